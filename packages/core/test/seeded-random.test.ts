import fc from 'fast-check';
import { expect, test } from 'vitest';
import { seededRandom } from '../src/testing.ts';

const draws = (count: number, ...names: (string | number)[]) => {
  const random = seededRandom(...names);
  return Array.from({ length: count }, random);
};

test('the same names give the same numbers, other names give others', () => {
  expect(draws(20, 'jitter', 7)).toEqual(draws(20, 'jitter', 7));
  expect(draws(20, 'jitter', 7)).not.toEqual(draws(20, 'jitter', 8));
  expect(draws(20, 'jitter', 7)).not.toEqual(draws(20, 'arrivals', 7));
  expect(draws(5, 'a', 'b')).not.toEqual(draws(5, 'ab'));
});

test('a seed means the same in every version', () => {
  expect(draws(4, 'jitter', 7).map((roll) => roll.toFixed(8))).toMatchInlineSnapshot(`
    [
      "0.79778630",
      "0.90374423",
      "0.19673260",
      "0.74636857",
    ]
  `);
});

test('is always in [0, 1)', () => {
  fc.assert(
    fc.property(fc.string(), fc.integer(), (name, seed) => {
      for (const roll of draws(50, name, seed)) expect(roll >= 0 && roll < 1).toBe(true);
    }),
  );
});

test('is even, and neighbouring seeds have nothing in common', () => {
  const buckets = new Array<number>(20).fill(0);
  const firsts: number[] = [];
  for (let seed = 0; seed < 500; seed++) {
    const rolls = draws(40, seed);
    firsts.push(rolls[0]!);
    for (const roll of rolls) buckets[Math.floor(roll * 20)]!++;
  }
  // 1,000 a bucket, give or take five standard deviations.
  for (const count of buckets) expect(Math.abs(count - 1_000)).toBeLessThan(160);
  const mean = firsts.reduce((sum, roll) => sum + roll, 0) / firsts.length;
  expect(Math.abs(mean - 0.5)).toBeLessThan(0.07);
  expect(new Set(firsts).size).toBe(firsts.length);
});
