import { memoryEngine } from '@holdfast/contracts/memory';
import { ambientContext, policy } from 'holdfast';
import { describe, expect, test } from 'vitest';
import { type Exchange, idempotency, packaging } from '../src/index.ts';
import { frameworks, reply } from './frameworks.ts';

describe.each(frameworks)('packaging on $name', ({ serve }) => {
  test('makes one attempt, whatever the policy of a call says', async () => {
    const calls = { packaged: 0, owned: 0 };
    const quick = { attempts: 3, backoff: { base: '1ms' } } as const;
    const answer = async (count: keyof typeof calls) => {
      const { story } = await policy(quick).try(async () => {
        calls[count]++;
        throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
      });
      return reply(502, String(story.stop));
    };
    await using packaged = await serve([packaging()], () => answer('packaged'));
    await using owner = await serve([], () => answer('owned'));
    expect(await (await fetch(packaged.origin)).text()).toBe('not_owner');
    expect(await (await fetch(owner.origin)).text()).toBe('attempts_exhausted');
    expect(calls).toEqual({ packaged: 1, owned: 3 });
  });

  test('passes the key of a request on with its owner, if it is told who that is', async () => {
    const keys: unknown[] = [];
    const remember = () => {
      keys.push(ambientContext()?.idempotencyKey);
      return reply(200);
    };
    const scope = (exchange: Exchange) => exchange.header('user');
    await using server = await serve([packaging({ scope })], remember);
    await using unscoped = await serve([packaging()], remember);
    const post = (origin: string, headers: Record<string, string>) =>
      fetch(origin, { method: 'POST', headers });
    await post(server.origin, { user: 'ada', 'idempotency-key': 'k' });
    await post(server.origin, { user: 'bob', 'idempotency-key': 'k' });
    await post(server.origin, { user: 'ada', 'idempotency-key': 'k' });
    await post(server.origin, { user: 'ada' });
    await post(server.origin, { 'idempotency-key': 'k' });
    await post(unscoped.origin, { user: 'ada', 'idempotency-key': 'k' });
    const [ada, bob, again, ...none] = keys;
    expect(ada).toEqual(expect.any(String));
    expect(again).toBe(ada);
    expect(bob).not.toBe(ada);
    expect(none).toEqual([undefined, undefined, undefined]);
    const bad = await post(server.origin, { user: 'ada', 'idempotency-key': 'a,b' });
    expect(bad.status).toBe(400);
    expect(keys).toHaveLength(6);
  });

  test('leaves the key to idempotency(), which keeps it', async () => {
    const { ledger } = memoryEngine();
    const keys: unknown[] = [];
    const parts = [packaging({ scope: () => 'ada' }), idempotency({ ledger, scope: () => 'ada' })];
    await using server = await serve(parts, () => {
      keys.push(ambientContext()?.idempotencyKey);
      return reply(200);
    });
    const headers = { 'idempotency-key': 'k' };
    await fetch(server.origin, { method: 'POST', headers });
    await fetch(server.origin, { method: 'POST', headers });
    expect(keys).toEqual([expect.any(String)]);
  });
});

test('what is not a function is named', () => {
  expect(() => packaging({ scope: 'ada' as never })).toThrow(/packaging\.scope.*"ada"/);
});
