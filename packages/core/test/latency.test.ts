import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Latency } from '../src/machines/latency.ts';

const MINUTE = 60_000;

function record(latency: Latency, now: number, ms: number, times = 1): void {
  for (let i = 0; i < times; i++) latency.record(now, ms);
}

describe('quantiles', () => {
  test('are within 5 % of the truth, from 20 µs to half an hour', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: Math.log(0.02), max: Math.log(1_800_000), noNaN: true }), {
          minLength: 1,
          maxLength: 300,
          size: 'max',
        }),
        fc.constantFrom(0.01, 0.5, 0.9, 0.98, 0.99, 0.999, 1),
        (logs, q) => {
          const latency = new Latency();
          const all = logs.map(Math.exp).sort((a, b) => a - b);
          for (const ms of all) latency.record(0, ms);
          const truth = all[Math.ceil(q * all.length) - 1]!;
          expect(latency.quantile(q) / truth).toBeGreaterThan(0.95);
          expect(latency.quantile(q) / truth).toBeLessThan(1.05);
        },
      ),
    );
  });

  test('are 0 without samples', () => {
    const latency = new Latency();
    expect(latency.quantile(0.5)).toBe(0);
    expect(latency.samples).toBe(0);
    record(latency, 0, 10);
    expect(latency.quantile(0.5)).toBeCloseTo(10, 0);
  });

  test('take what is out of range as the nearest that is in it', () => {
    for (const [ms, expected] of [
      [0, 0.0165],
      [-5, 0.0165],
      [Number.NaN, 0.0165],
      [Infinity, 2_113_929.216],
    ] as const) {
      const latency = new Latency();
      record(latency, 0, ms);
      expect(latency.quantile(1)).toBeCloseTo(expected, 9);
    }
  });

  test('are kept for a few samples, fewer when there are few', () => {
    const latency = new Latency();
    record(latency, 0, 10);
    latency.quantile(0.5);
    record(latency, 0, 1_000, 2);
    expect(latency.quantile(0.5)).toBeGreaterThan(900);
    record(latency, 0, 10, 4_000);
    expect(latency.quantile(0.999)).toBeLessThan(11);
    record(latency, 0, 1_000, 250);
    expect(latency.quantile(0.999)).toBeLessThan(11);
    expect(latency.quantile(0.9)).toBeLessThan(11);
    record(latency, 0, 1_000);
    expect(latency.quantile(0.999)).toBeGreaterThan(900);
  });
});

test('any number of different quantiles can be asked for', () => {
  const latency = new Latency();
  for (let i = 1; i <= 100; i++) record(latency, 0, i);
  for (let i = 1; i <= 100; i++)
    expect(Math.abs(latency.quantile((i - 0.5) / 100) / i - 1)).toBeLessThan(0.05);
});

describe('samples fade', () => {
  test('by number', () => {
    const latency = new Latency();
    record(latency, 0, 1_000, 5_000);
    record(latency, 0, 10, 5_000);
    expect(latency.samples).toBe(10_000);
    expect(latency.quantile(1)).toBeGreaterThan(900);
    record(latency, 0, 10, 300);
    expect(latency.samples).toBe(5_300);
    expect(latency.quantile(1)).toBeLessThan(11);
  });

  test('by time', () => {
    const latency = new Latency();
    record(latency, 0, 1_000, 10);
    record(latency, 5 * MINUTE - 1, 10);
    expect(latency.samples).toBe(11);
    record(latency, 5 * MINUTE, 10);
    expect(latency.samples).toBe(12);
    record(latency, 10 * MINUTE, 10);
    expect(latency.samples).toBe(2);
    expect(latency.quantile(1)).toBeLessThan(11);
  });

  test('after a long rest nothing of before is left', () => {
    const latency = new Latency();
    record(latency, 0, 1_000, 10);
    record(latency, 60 * MINUTE, 10);
    expect(latency.samples).toBe(1);
    expect(latency.quantile(1)).toBeLessThan(11);
  });

  test('a clock that steps back does not make them last', () => {
    const latency = new Latency();
    record(latency, 1e9, 1_000, 5_000);
    record(latency, 0, 10, 5_001);
    expect(latency.quantile(1)).toBeLessThan(11);
  });
});

test('recent follows the last samples', () => {
  const latency = new Latency();
  expect(latency.recent).toBe(0);
  record(latency, 0, 100);
  expect(latency.recent).toBe(100);
  record(latency, 0, 200);
  expect(latency.recent).toBe(110);
  record(latency, 0, 500, 60);
  expect(latency.recent).toBeGreaterThan(490);
});
