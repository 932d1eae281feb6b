import { describe, expect, test } from 'vitest';
import { policy } from '../src/policy/all-parts.ts';
import type { PolicySpec } from '../src/policy/policy-spec.ts';
import { after, scripted, seededRandom, virtualClock } from '../src/testing.ts';

/** Ordinary days on the virtual clock: the default policy against a service that is well. */
function setup(spec: PolicySpec = {}) {
  const clock = virtualClock();
  const made = policy(spec, { clock, random: seededRandom('weather', 1) });
  const call = (...beats: unknown[]) => scripted(clock, ...beats);
  /** How many of these calls succeed. */
  async function calls(count: number, answerMs: number, gapMs = 20_000): Promise<number> {
    const running: ReturnType<typeof made.try>[] = [];
    for (let n = 0; n < count; n++) {
      const answer = after(answerMs, 'fine');
      running.push(made.try(call(answer, answer, answer)));
      await clock.advance(gapMs);
    }
    await clock.advance('60s');
    return (await Promise.all(running)).filter(({ ok }) => ok).length;
  }
  return { clock, policy: made, call, calls };
}

describe('a service that always answers, and takes its time', () => {
  test.each([1_900, 2_200, 3_000, 5_000, 6_500])('is not broken by us at %d ms', async (ms) => {
    const { policy: made, calls } = setup();
    expect(await calls(300, ms)).toBe(300);
    expect(made.counters.attempts).toBeLessThanOrEqual(301);
  });

  test('loses the first call at most where it needs more than 70 % of the patience', async () => {
    const { policy: made, calls } = setup();
    expect(await calls(300, 8_000)).toBe(299);
    expect(made.counters.attempts).toBe(301);
  });

  test('nor are calls in flight beside the first one that timed out', async () => {
    const { clock, policy: made, call } = setup();
    const running = Array.from({ length: 10 }, () => made.try(call(after(3_000, 1), after(3_000, 1))));
    await clock.advance('10s');
    expect((await Promise.all(running)).every(({ ok }) => ok)).toBe(true);
    expect(made.counters).toMatchObject({ timeouts: 1, attempts: 11 });
  });
});

describe('an attempt that nothing could follow', () => {
  test('is not cut short: it must not be repeated', async () => {
    const { clock, policy: made, call } = setup();
    const running = made.try(call(after(6_000, 'charged')), { idempotent: false });
    await clock.advance('10s');
    expect(await running).toMatchObject({ ok: true, value: 'charged' });
  });

  test('is not cut short: nothing is left to pay for another', async () => {
    const { clock, policy: made, call } = setup();
    const failing = () => Object.assign(new Error('busy'), { status: 503 });
    void made.try(call(failing(), failing(), failing(), failing()));
    await clock.advance('5s');
    const running = made.try(call(after(6_000, 'late')));
    await clock.advance('10s');
    expect(await running).toMatchObject({ ok: true, value: 'late' });
    expect(made.counters.timeouts).toBe(0);
  });
});

describe('hangs', () => {
  test('are cut after a share of the patience where others are answered, and tried up to the last attempt', async () => {
    const { clock, policy: made, call } = setup();
    await made.run(call('fine'));
    const running = made.try(call('hang', 'hang', 'fine'));
    await clock.advance('2500ms');
    expect(made.counters.timeouts).toBe(1);
    // An answer within the limit says that the limit is right.
    void made.try(call(after(100, 1)));
    await clock.advance('7s');
    expect(await running).toMatchObject({ ok: true, value: 'fine' });
  });

  test('of all calls open the breaker, although the limit may be too short', async () => {
    const { clock, policy: made, call } = setup();
    for (let second = 0; second < 15; second++) {
      void made.try(call('hang', 'hang', 'hang', 'hang'));
      await clock.advance('1s');
    }
    expect(made.plan.targetOf!(undefined, clock.now()).breaker!.state(clock.now())).not.toBe('closed');
  });
});

describe('slow is relative', () => {
  test('answers of five times the usual never open the breaker, and those of twenty times do', async () => {
    const { clock, policy: made, calls } = setup({ patience: '60s' });
    const { breaker } = made.plan.targetOf!(undefined, clock.now());
    await calls(500, 1_000, 200);
    expect(await calls(500, 5_000, 200)).toBe(500);
    expect(breaker!.isClosed).toBe(true);
    const worse = setup({ patience: '60s' });
    await worse.calls(500, 100, 200);
    expect(await worse.calls(500, 2_500, 200)).toBeLessThan(500);
    expect(worse.policy.counters.stops).toHaveProperty('breaker_open');
  });
});
