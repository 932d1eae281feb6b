import { ambientContext } from 'holdfast';
import { describe, expect, test } from 'vitest';
import { deadline, degrade, peers, type RequestContext } from '../src/index.ts';
import { frameworks, plain, reply } from './frameworks.ts';

const inside = peers('127.0.0.1');

describe.each(frameworks)('a deadline on $name', ({ serve }) => {
  test('is what the request says, and what is called for it inherits it', async () => {
    let seen: RequestContext | undefined;
    let inherited: ReturnType<typeof ambientContext>;
    await using server = await serve([deadline({ inside })], async ({ context }) => {
      seen = context;
      await null;
      inherited = ambientContext();
      return reply(200);
    });
    await fetch(server.origin, {
      method: 'POST',
      body: 'x',
      headers: { holdfast: 'patience=1500, attempt=2, owner=?1, priority=critical' },
    });
    expect(seen).toMatchObject({ attempt: 2, ownedUpstream: true, priority: 'critical' });
    expect(seen!.patienceLeft).toBeLessThanOrEqual(1500);
    expect(seen!.patienceLeft).toBeGreaterThan(0);
    expect(inherited).toMatchObject({ attempt: 2, ownedUpstream: true, priority: 'critical' });
    expect(inherited!.signal).toBe(seen!.signal);
  });

  test('that is over is answered at once, and nothing is done', async () => {
    let calls = 0;
    await using server = await serve([deadline()], () => {
      calls++;
      return reply(200);
    });
    const answer = await fetch(server.origin, { headers: { holdfast: 'patience=0' } });
    expect(answer.status).toBe(504);
    expect(answer.headers.get('holdfast')).toBe('retry=safe');
    expect(await answer.json()).toMatchObject({ type: 'urn:holdfast:problem:patience-spent' });
    expect(calls).toBe(0);
  });

  test('that passes ends the work, and the client is told', async () => {
    const aborted = Promise.withResolvers<unknown>();
    await using server = await serve([deadline()], ({ context }) => {
      context.signal.addEventListener('abort', () => aborted.resolve(context.signal.reason));
      return aborted.promise.then(() => reply(200, 'too late'));
    });
    const answer = await fetch(server.origin, { headers: { holdfast: 'patience=30' } });
    expect(answer.status).toBe(504);
    expect(await answer.json()).toMatchObject({ type: 'urn:holdfast:problem:too-slow' });
    expect(await aborted.promise).toMatchObject({ code: 'HOLDFAST_PATIENCE_SPENT' });
    expect(
      await (await fetch(server.origin, { method: 'HEAD', headers: { holdfast: 'patience=0' } })).status,
    ).toBe(504);
  });

  test('that passes is a failure like any other to those who have something instead', async () => {
    let works = true;
    const parts = [deadline(), degrade({ rest: '0ms' })];
    await using server = await serve(parts, ({ context: { signal } }) => {
      if (works) return reply(200, 'good');
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    });
    const get = async (path: string) => {
      const answer = await fetch(server.origin + path, { headers: { holdfast: 'patience=50' } });
      return [answer.status, answer.headers.get('x-degraded'), await answer.text()];
    };
    await get('/known');
    works = false;
    expect(await get('/known')).toEqual([200, 'stale', 'good']);
    expect(await get('/unknown')).toEqual([504, null, expect.stringContaining('too-slow')]);
  });

  test('ends with the client', async () => {
    const begun = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<unknown>();
    await using server = await serve([deadline()], ({ context }) => {
      context.signal.addEventListener('abort', () => aborted.resolve(context.signal.reason));
      begun.resolve();
      return aborted.promise.then(() => reply(200));
    });
    const client = new AbortController();
    const answer = fetch(server.origin, { signal: client.signal });
    await begun.promise;
    client.abort();
    await expect(answer).rejects.toThrow();
    expect(await aborted.promise).toMatchObject({ code: 'HOLDFAST_CLIENT_GONE' });
  });
});

test.each([
  ['x-request-timeout-ms', '700', 700],
  ['grpc-timeout', '600m', 600],
  ['x-envoy-expected-rq-timeout-ms', '500', 500],
])('%s is read as well', async (name, value, wanted) => {
  let left = 0;
  await using server = await plain.serve([deadline()], ({ context }) => {
    left = context.patienceLeft;
    return reply(200);
  });
  await fetch(server.origin, { headers: { [name]: value } });
  expect(left).toBeLessThanOrEqual(wanted);
  expect(left).toBeGreaterThan(wanted - 300);
});
