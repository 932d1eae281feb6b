import { describe, expect, test } from 'vitest';
import { policy } from '../src/policy/all-parts.ts';
import type { PolicySpec } from '../src/policy/policy-spec.ts';
import { after, type Beat, scripted, seededRandom, virtualClock } from '../src/testing.ts';

const targets = ['a', 'b', 'c'];

function setup(spec: PolicySpec = {}, seed = 1) {
  const clock = virtualClock();
  const made = policy(
    { retryOn: 'any', backoff: { base: '10ms', jitter: 'none' }, ...spec },
    { clock, random: seededRandom('pool', seed) },
  );
  const target = (name: string) => made.plan.targets!.get(name, clock.now());
  return { clock, policy: made, target, call: (...beats: Beat[]) => scripted(clock, ...beats) };
}

describe('of several targets', () => {
  test('a retry prefers one that was not tried', async () => {
    for (let seed = 0; seed < 30; seed++) {
      const { clock, policy: made } = setup({}, seed);
      const seen: (string | undefined)[] = [];
      void made.try(
        ({ target: name }) => {
          seen.push(name);
          return Promise.reject(new Error('down'));
        },
        { targets },
      );
      await clock.advance('1s');
      expect(seen.slice(0, 3).sort()).toEqual(targets);
      expect(seen.length).toBe(4);
    }
  });

  test('so does a hedge', async () => {
    const { clock, policy: made, call } = setup({ hedge: { after: '10ms', extraLoad: 1 } });
    for (let n = 0; n < 20; n++) await made.run(() => n, { targets });
    const seen: (string | undefined)[] = [];
    const slow = call(after('1s', 1));
    void made.run(
      ({ target: name }) => {
        seen.push(name);
        return slow();
      },
      { targets },
    );
    await clock.advance('2s');
    expect(new Set(seen).size).toBe(2);
  });

  test('one that refuses is passed over, and when all do the work is refused', async () => {
    const { clock, policy: made, target } = setup({ attempts: 1 });
    await made.run(() => 1, { targets });
    target('a').breaker!.force('open', clock.now());
    target('b').breaker!.force('open', clock.now());
    for (let n = 0; n < 20; n++)
      await expect(made.run(({ target: name }) => name, { targets })).resolves.toBe('c');
    target('c').breaker!.force('open', clock.now());
    expect(await made.try(() => 1, { targets })).toMatchObject({
      error: { code: 'HOLDFAST_BREAKER_OPEN' },
      story: { stop: 'breaker_open', attempts: 0 },
    });
  });

  test('a full one is passed over too, and a failure elsewhere is retried there', async () => {
    const { clock, policy: made, call } = setup({ bulkhead: { concurrent: 1, queue: 0 } });
    void made.run(call(after('1s', 1)), { target: 'a' });
    void made.run(call(after('1s', 1)), { target: 'b' });
    for (let n = 0; n < 5; n++)
      await expect(made.run(({ target: name }) => name, { targets })).resolves.toBe('c');
    await clock.advance('1s');
  });

  test('one that fails much more than the others is sent away, and comes back', async () => {
    const { clock, policy: made } = setup({ breaker: false, choice: { consecutive: 3, ejectFor: '1s' } });
    const calls: Record<string, number> = { a: 0, b: 0, c: 0 };
    let isSick = true;
    const some = async (count: number) => {
      for (let n = 0; n < count; n++) {
        void made.try(
          async ({ target: name = '' }) => {
            calls[name]!++;
            if (name === 'a' && isSick) throw new Error('down');
          },
          { targets },
        );
        await clock.advance('5ms');
      }
    };
    await some(400);
    expect(calls.a! / made.counters.attempts).toBeLessThan(0.1);
    isSick = false;
    await clock.advance('1m');
    const before = { ...calls };
    await some(300);
    expect(calls.a! - before.a!).toBeGreaterThan(60);
  });

  test('they share one budget, and each has its own breaker', async () => {
    const { clock, policy: made, target } = setup({ breaker: { consecutive: 2 }, attempts: 2 });
    for (let n = 0; n < 3; n++) void made.try(() => Promise.reject(new Error('down')), { targets });
    await clock.advance('1s');
    expect(target('a').budget!.tokens(clock.now())).toBe(1);
    expect(made.plan.targetOf!({ targets }, clock.now()).budget!.tokens(clock.now())).toBe(0);
    expect(made.plan.targetOf!({ targets }, clock.now()).breaker).toBe(undefined);
  });

  test('none of them is an outlier when all fail: that is an outage', async () => {
    const {
      clock,
      policy: made,
      target,
    } = setup({ breaker: false, budget: false, choice: { consecutive: 2 } });
    for (let n = 0; n < 50; n++) {
      void made.try(() => Promise.reject(new Error('down')), { targets });
      await clock.advance('50ms');
    }
    const away = targets.filter((name) => target(name).health!.ejectedUntil > clock.now());
    expect(away.length).toBeLessThanOrEqual(1);
  });
});
