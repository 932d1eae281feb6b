import fc from 'fast-check';
import { seededRandom } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import { type DelaySettings, quantile } from '../src/distribution.ts';
import type { FaultSpec } from '../src/fault-spec.ts';
import { type ChaosSpec, readChaos } from '../src/spec.ts';
import { isInForce, nextChange, type Subject, strike } from '../src/strike.ts';

const always = () => 0;
const at = (faults: FaultSpec[], now = 0, subject: Partial<Subject> = {}) =>
  strike(readChaos({ faults }), always, now, { number: 1, ...subject });
const kindsAt = (...args: Parameters<typeof at>) => at(...args)?.kinds ?? [];

test('the same seed gives the same faults', () => {
  const spec: ChaosSpec = {
    faults: [
      { kind: 'latency', rate: 0.5, delay: { distribution: 'lognormal', median: 20 } },
      { kind: 'reset', rate: 0.2 },
      { kind: 'status', rate: 0.2 },
    ],
  };
  const run = (seed: number) => {
    const random = seededRandom(seed);
    return Array.from({ length: 200 }, (_, index) =>
      strike(readChaos(spec), random, index, { number: index + 1 }),
    );
  };
  expect(run(1)).toEqual(run(1));
  expect(run(1)).not.toEqual(run(2));
});

test('a change to one fault does not move the others', () => {
  const struck = (first: FaultSpec) => {
    const random = seededRandom('x');
    const plan = readChaos({ faults: [first, { kind: 'reset', rate: 0.3 }] });
    return Array.from({ length: 300 }, (_, index) =>
      Boolean(strike(plan, random, 0, { number: index + 1 })?.kinds.includes('reset')),
    );
  };
  const calm = struck({ kind: 'latency', delay: 1, rate: 0 });
  expect(struck({ kind: 'latency', delay: { distribution: 'pareto', min: 5 } })).toEqual(calm);
  expect(struck({ kind: 'latency', delay: 5, match: { method: 'PUT' } })).toEqual(calm);
});

test('strikes as often as the rate says', () => {
  const random = seededRandom('rate');
  const plan = readChaos({ faults: [{ kind: 'hang', rate: 0.2 }] });
  const struck = Array.from({ length: 10_000 }, () => strike(plan, random, 0, { number: 1 })).filter(Boolean);
  expect(struck.length).toBeGreaterThan(1850);
  expect(struck.length).toBeLessThan(2150);
});

test('latencies add up, the slowest speed counts, and the first ending wins', () => {
  const fault = at([
    { kind: 'latency', delay: 10, direction: 'both' },
    { kind: 'latency', delay: '5ms' },
    { kind: 'slow', bytesPerSecond: 100 },
    { kind: 'slow', bytesPerSecond: 50, direction: 'both' },
    { kind: 'reset', afterBytes: 7 },
    { kind: 'hang' },
  ]);
  expect(fault).toMatchObject({
    kinds: ['latency', 'latency', 'slow', 'slow', 'reset'],
    requestDelayMs: 10,
    responseDelayMs: 15,
    requestBytesPerSecond: 50,
    responseBytesPerSecond: 50,
    ending: { kind: 'reset', afterBytes: 7 },
  });
});

describe('when', () => {
  test('from and until bound the time', () => {
    const faults: FaultSpec[] = [{ kind: 'hang', from: '1s', until: '2s' }];
    expect([999, 1000, 1999, 2000].map((now) => kindsAt(faults, now).length)).toEqual([0, 1, 1, 0]);
  });

  test('flapping starts up, at from', () => {
    const faults: FaultSpec[] = [{ kind: 'hang', from: 100, flap: { up: 10, down: 5 } }];
    expect([99, 100, 109, 110, 114, 115, 125, 130].map((now) => kindsAt(faults, now).length)).toEqual([
      0, 0, 0, 1, 1, 0, 1, 0,
    ]);
  });

  test('first and every count subjects', () => {
    const struck = (fault: FaultSpec) =>
      [1, 2, 3, 4, 5, 6].filter((number) => kindsAt([fault], 0, { number }).length);
    expect(struck({ kind: 'hang', first: 2 })).toEqual([1, 2]);
    expect(struck({ kind: 'hang', every: 3 })).toEqual([3, 6]);
    expect(struck({ kind: 'hang', every: 2, first: 3 })).toEqual([2]);
  });

  test.each<[NonNullable<FaultSpec['match']>, Partial<Subject>, boolean]>([
    [{ method: 'get' }, { method: 'GET' }, true],
    [{ method: ['PUT', 'POST'] }, { method: 'POST' }, true],
    [{ method: 'PUT' }, { method: 'POST' }, false],
    [{ method: 'PUT' }, {}, false],
    [{ path: '/orders' }, { path: '/orders' }, true],
    [{ path: '/orders' }, { path: '/orders/1' }, false],
    [{ path: '/orders/*' }, { path: '/orders/1' }, true],
    [{ path: '*/items/*/x' }, { path: '/a/items/9/x' }, true],
    [{ path: '/a*a' }, { path: '/a' }, false],
    [{ path: '/A' }, { path: '/a' }, false],
    [{ target: 'db:*' }, { target: 'db:5432' }, true],
    [{ target: 'db:*', method: 'GET' }, { target: 'db:5432', method: 'PUT' }, false],
  ])('match %j, subject %j: %s', (match, subject, expected) => {
    expect(kindsAt([{ kind: 'hang', match }], 0, subject).length > 0).toBe(expected);
  });

  test('the next change is the next time that the answer is another', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 50 }),
        fc.option(fc.integer({ min: 51, max: 100 }), { nil: undefined }),
        fc.option(fc.record({ up: fc.integer({ min: 1, max: 9 }), down: fc.integer({ min: 1, max: 9 }) }), {
          nil: undefined,
        }),
        fc.integer({ min: 0, max: 120 }),
        (from, until, flap, now) => {
          const fault = readChaos({ faults: [{ kind: 'hang', from, until, flap }] }).faults[0]!;
          const change = nextChange(fault, now);
          const horizon = Math.min(change, now + 60);
          for (let time = now; time < horizon; time++)
            expect(isInForce(fault, time)).toBe(isInForce(fault, now));
          expect(change).toBeGreaterThan(now);
          // `from` with a flap starts up, which changes nothing.
          if (change < Infinity && !(flap && now < from)) {
            expect(isInForce(fault, change)).toBe(!isInForce(fault, now) && change !== until);
          }
        },
      ),
    );
  });
});

describe('delays', () => {
  const delays: [DelaySettings, number, number][] = [
    [25, 25, 25],
    [{ distribution: 'uniform', min: 10, max: 20 }, 15, 19],
    [{ distribution: 'exponential', mean: 10, cap: 1e9 }, 10 * Math.LN2, 10 * Math.log(10)],
    [{ distribution: 'lognormal', median: 20, sigma: 1, cap: 1e9 }, 20, 20 * Math.exp(1.2816)],
    [{ distribution: 'pareto', min: 10, alpha: 2, cap: 1e9 }, 10 * Math.SQRT2, 10 * Math.sqrt(10)],
  ];
  test.each(delays)('%j has its median and its p90 where they belong', (delay, median, p90) => {
    expect(quantile(delay, 0.5) / median).toBeCloseTo(1, 2);
    expect(quantile(delay, 0.9) / p90).toBeCloseTo(1, 2);
  });

  test('never shrink as chance grows, never go below zero, never pass their cap', () => {
    const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.constantFrom(...delays.map(([delay]) => delay)), share, share, (given, a, b) => {
        const delay = typeof given === 'object' && 'cap' in given ? { ...given, cap: 50 } : given;
        const [low, high] = [quantile(delay, Math.min(a, b)), quantile(delay, Math.max(a, b))];
        expect(low).toBeGreaterThanOrEqual(0);
        expect(high - low).toBeGreaterThanOrEqual(-0.02);
        expect(high).toBeLessThanOrEqual(50);
      }),
    );
  });
});
