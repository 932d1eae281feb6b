import { describe, expect, test } from 'vitest';
import { RetryBudget } from '../src/machines/budget.ts';

const settings = { ratio: 0.1, windowMs: 10_000, attempts: 4 };
const callsPerMs = 10;

/** Repeatable chance: xorshift, from a seed. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/**
 * A fleet with 10,000 calls a second in all, at random times, that has been well for a minute when everything fails.
 * Retries are sent at once, which is the worst case. Gives attempts for each first try since the outage began.
 */
function outage(clients: number): { first5s: number; over60s: number } {
  const random = chance(clients);
  const fleet = Array.from({ length: clients }, () => new RetryBudget(settings));
  const outageAt = 60_000;
  let now = 0;
  let firstTries = 0;
  let attempts = 0;
  let first5s = 0;
  while (now < outageAt + 60_000) {
    now -= Math.log(1 - random()) / callsPerMs;
    const budget = fleet[Math.floor(random() * clients)]!;
    budget.firstTry(now);
    if (now < outageAt) {
      budget.success();
      continue;
    }
    firstTries++;
    attempts++;
    for (let attempt = 2; attempt <= settings.attempts && budget.trySpend(now, 1); attempt++) attempts++;
    if (now < outageAt + 5_000) first5s = attempts / firstTries;
  }
  return { first5s, over60s: attempts / firstTries };
}

describe('a total outage', () => {
  test.each([10, 1_000, 10_000])('is met with hardly more load by %d clients', (clients) => {
    const { first5s, over60s } = outage(clients);
    expect(first5s).toBeLessThanOrEqual(1.25);
    expect(over60s).toBeLessThanOrEqual(1.05);
    // The budget is there to be used: a fleet that would not retry at all is not what we promise.
    expect(first5s).toBeGreaterThan(1.1);
  });
});

describe('a lone caller', () => {
  test('whose first and only call fails twice succeeds on the third attempt', () => {
    const budget = new RetryBudget(settings);
    budget.firstTry(0);
    expect([budget.trySpend(100, 1), budget.trySpend(400, 1)]).toEqual([true, true]);
  });

  test('with one call a minute and 5 % failures succeeds at least 98 times of 100', () => {
    const random = chance(2_026);
    const budget = new RetryBudget(settings);
    const calls = 400_000;
    let succeeded = 0;
    for (let call = 0; call < calls; call++) {
      const now = call * 60_000;
      budget.firstTry(now);
      for (let attempt = 1; attempt <= settings.attempts; attempt++) {
        if (random() >= 0.05) {
          budget.success();
          succeeded++;
          break;
        }
        if (!budget.trySpend(now, 1)) break;
      }
    }
    expect(succeeded / calls).toBeGreaterThanOrEqual(0.98);
  });
});
