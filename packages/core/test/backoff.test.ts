import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type BackoffSettings, backoff } from '../src/decide/backoff.ts';

const settings: BackoffSettings = {
  strategy: 'exponential',
  base: 100,
  factor: 2,
  cap: 5000,
  jitter: 'none',
};

function delays(change: Partial<BackoffSettings>, roll = 0, attempts = [1, 2, 3, 4, 5, 6, 7, 8]): number[] {
  const delay = backoff({ ...settings, ...change });
  let previousMs = 0;
  return attempts.map((attempt) => {
    previousMs = delay(attempt, previousMs, roll, 0);
    return previousMs;
  });
}

describe('strategies', () => {
  test('constant waits the same', () => {
    expect(delays({ strategy: 'constant' })).toEqual([100, 100, 100, 100, 100, 100, 100, 100]);
  });

  test('linear adds the base each time', () => {
    expect(delays({ strategy: 'linear' })).toEqual([100, 200, 300, 400, 500, 600, 700, 800]);
  });

  test('exponential multiplies by the factor, up to the cap', () => {
    expect(delays({})).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    expect(delays({ factor: 3, cap: 1e9 })).toEqual([100, 300, 900, 2700, 8100, 24_300, 72_900, 218_700]);
  });

  test('fibonacci adds the last two', () => {
    expect(delays({ strategy: 'fibonacci' })).toEqual([100, 100, 200, 300, 500, 800, 1300, 2100]);
  });

  test('polynomial raises the attempt to the factor', () => {
    expect(delays({ strategy: 'polynomial' })).toEqual([100, 400, 900, 1600, 2500, 3600, 4900, 5000]);
  });

  test('an attempt in the millions is the cap, at once', () => {
    for (const strategy of ['linear', 'exponential', 'fibonacci', 'polynomial'] as const) {
      expect(backoff({ ...settings, strategy })(10_000_000, 0, 0, 0)).toBe(5000);
    }
  });
});

describe('jitter', () => {
  test('full takes any share of the delay', () => {
    expect(delays({ jitter: 'full' }, 0)).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
    expect(delays({ jitter: 'full' }, 0.5, [1, 2, 3])).toEqual([50, 100, 200]);
  });

  test('equal keeps half', () => {
    expect(delays({ jitter: 'equal' }, 0, [1, 2])).toEqual([50, 100]);
    expect(delays({ jitter: 'equal' }, 0.5, [1, 2])).toEqual([75, 150]);
  });

  test('a factor rolls that share', () => {
    expect(delays({ jitter: 0.2 }, 0, [1])).toEqual([80]);
    expect(delays({ jitter: 0.2 }, 0.5, [1])).toEqual([90]);
    expect(delays({ jitter: 0 }, 0.5, [1])).toEqual([100]);
  });

  test('decorrelated grows from the wait before it', () => {
    expect(delays({ jitter: 'decorrelated' }, 0, [1, 2, 3])).toEqual([100, 100, 100]);
    expect(delays({ jitter: 'decorrelated' }, 0.5, [1, 2, 3])).toEqual([200, 350, 575]);
    expect(delays({ jitter: 'decorrelated' }, 0.999, [1, 2, 3, 4, 5]).at(-1)).toBe(5000);
  });

  test('plus-minus moves either way, never below zero or above the cap', () => {
    expect(delays({ jitter: { plusMinus: 30 } }, 0, [1])).toEqual([70]);
    expect(delays({ jitter: { plusMinus: 30 } }, 0.5, [1])).toEqual([100]);
    expect(delays({ jitter: { plusMinus: 300 } }, 0, [1])).toEqual([0]);
    expect(delays({ jitter: { plusMinus: 300 } }, 0.999, [8])).toEqual([5000]);
  });
});

test('throttled work starts from the higher base, and is not held below it by a lower cap', () => {
  expect(backoff(settings)(1, 0, 0, 1000)).toBe(1000);
  expect(backoff(settings)(3, 0, 0, 1000)).toBe(4000);
  expect(backoff({ ...settings, cap: 300 })(1, 0, 0, 1000)).toBe(1000);
  expect(backoff({ ...settings, jitter: 'decorrelated' })(1, 0, 0.5, 1000)).toBe(2000);
});

test('every delay is within zero and the cap, whatever the settings', () => {
  const anySettings = fc.record({
    strategy: fc.constantFrom('constant', 'linear', 'exponential', 'fibonacci', 'polynomial'),
    base: fc.double({ min: 0, max: 1e6, noNaN: true }),
    factor: fc.double({ min: 1, max: 50, noNaN: true }),
    cap: fc.double({ min: 0, max: 1e12, noNaN: true }),
    jitter: fc.oneof(
      fc.constantFrom('none', 'full', 'equal', 'decorrelated'),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.record({ plusMinus: fc.double({ min: 0, max: 1e6, noNaN: true }) }),
    ),
  }) as fc.Arbitrary<BackoffSettings>;
  const roll = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(
      anySettings,
      fc.nat(1e6),
      fc.double({ min: 0, max: 1e9, noNaN: true }),
      roll,
      (made, n, previousMs, r) => {
        const delayMs = backoff(made)(n + 1, previousMs, r, 0);
        expect(delayMs).toBeGreaterThanOrEqual(0);
        expect(delayMs).toBeLessThanOrEqual(made.cap);
      },
    ),
  );
});
