import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Gcra, gcraTake, gcraWait } from '../src/machines/gcra.ts';

/** 50 a second, 10 at once. */
function setup(ratePerMs = 0.05, burst = 10) {
  return new Gcra({ ratePerMs, burst });
}

describe('refusing', () => {
  test('lets a burst through at once, and then one an interval', () => {
    const limit = setup();
    for (let i = 0; i < 10; i++) expect(limit.reserve(0, 0)).toBe(0);
    expect(limit.reserve(0, 0)).toBe(-1);
    expect(limit.reserve(19, 0)).toBe(-1);
    expect(limit.reserve(20, 0)).toBe(0);
    expect(limit.reserve(39, 0)).toBe(-1);
    expect(limit.reserve(40, 0)).toBe(0);
  });

  test('a refusal takes nothing', () => {
    const limit = setup();
    for (let i = 0; i < 10; i++) limit.reserve(0, 0);
    for (let i = 0; i < 1_000; i++) limit.reserve(1, 0);
    expect(limit.reserve(20, 0)).toBe(0);
  });

  test('says how long to wait without taking anything', () => {
    const limit = setup();
    for (let i = 0; i < 10; i++) limit.reserve(0, 0);
    expect(limit.peek(5)).toBe(15);
    expect(limit.peek(5)).toBe(15);
    expect(limit.peek(5, 3)).toBe(55);
    expect(limit.peek(200)).toBe(0);
  });

  test('rests never save up more than the burst', () => {
    const limit = setup();
    let passed = 0;
    for (let i = 0; i < 100; i++) if (limit.reserve(1e9, 0) === 0) passed++;
    expect(passed).toBe(10);
  });
});

describe('waiting', () => {
  test('each waits an interval longer than the one before, up to the longest wait', () => {
    const limit = setup(0.05, 1);
    expect([1, 2, 3, 4, 5].map(() => limit.reserve(0, 60))).toEqual([0, 20, 40, 60, -1]);
    expect(limit.reserve(20, 60)).toBe(60);
  });
});

describe('cost', () => {
  test('what costs more takes more', () => {
    const limit = setup();
    expect(limit.reserve(0, 0, 7)).toBe(0);
    expect(limit.reserve(0, 0, 4)).toBe(-1);
    expect(limit.reserve(0, 0, 3)).toBe(0);
    expect(limit.tokens(0)).toBe(0);
    expect(limit.reserve(79, 0, 4)).toBe(-1);
    expect(limit.reserve(80, 0, 4)).toBe(0);
  });

  test('what costs more than the burst never passes, however long it would wait', () => {
    const limit = setup();
    expect(limit.peek(0, 11)).toBe(Infinity);
    expect(limit.reserve(0, Infinity, 11)).toBe(-1);
    expect(limit.reserve(0, 0, 10)).toBe(0);
  });
});

test('is a token bucket to those who look at it so', () => {
  const limit = setup();
  expect(limit.tokens(0)).toBe(10);
  limit.reserve(0, 0, 4);
  expect(limit.tokens(0)).toBe(6);
  expect(limit.tokens(10)).toBe(6.5);
  expect(limit.tokens(1e6)).toBe(10);
  for (let i = 0; i < 10; i++) limit.reserve(1e6, Infinity, 10);
  expect(limit.tokens(1e6)).toBe(0);
});

test('a server keeps one number a key', () => {
  const rate = { ratePerMs: 1, burst: 2 };
  let tat = 0;
  for (const now of [1_000, 1_000]) {
    expect(gcraWait(rate, tat, now, 1)).toBe(0);
    tat = gcraTake(rate, tat, now, 1);
  }
  expect(tat).toBe(1_002);
  expect(gcraWait(rate, tat, 1_000, 1)).toBe(1);
});

test.each([1 / 7, 0.03, 1 / 3, 3.3, 10 / 7])(
  'a rate of %d a ms is kept to the call, without drift',
  (ratePerMs) => {
    for (const start of [0, 1e9 + 0.1, 1.7e12]) {
      const limit = setup(ratePerMs, 5);
      limit.reserve(start, 0, 5);
      let passed = 0;
      for (let i = 1; i <= 10_000; i++) if (limit.reserve(start + i / ratePerMs, 0) === 0) passed++;
      expect(passed).toBeGreaterThanOrEqual(9_999);
    }
  },
);

test('never lets more than the burst and the rate pass, in any stretch of time', () => {
  const arrival = fc.record({
    waitMs: fc.nat(40),
    cost: fc.integer({ min: 1, max: 4 }),
    maxWaitMs: fc.nat(50),
  });
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 200, size: 'max' }), (arrivals) => {
      const limit = setup(0.07, 6);
      const passed: { at: number; cost: number }[] = [];
      let now = 0;
      for (const { waitMs, cost, maxWaitMs } of arrivals) {
        now += waitMs;
        const wait = limit.reserve(now, maxWaitMs, cost);
        expect(wait).toBeLessThanOrEqual(maxWaitMs);
        if (wait >= 0) passed.push({ at: now + wait, cost });
      }
      let excess = -Infinity;
      for (let from = 0; from < passed.length; from++) {
        let cost = 0;
        for (let to = from; to < passed.length; to++) {
          cost += passed[to]!.cost;
          excess = Math.max(excess, cost - 6 - 0.07 * (passed[to]!.at - passed[from]!.at));
        }
      }
      expect(excess).toBeLessThan(0.002);
    }),
  );
});
