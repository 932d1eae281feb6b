import { describe, expect, test } from 'vitest';
import { Throttle } from '../src/machines/throttle.ts';

/** Repeatable chance: a linear congruence, from a seed. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

/** Offers `perSecond` requests to a target that takes `takes` a second and answers after 100 ms. Gives rates after a minute. */
function load(k: number, perSecond: number, takes: number, seconds = 180, settleInFirst = 60) {
  const throttle = new Throttle({ k, windowMs: 30_000 });
  const random = chance(7_919);
  const answers: { at: number; taken: boolean }[] = [];
  let free = 0;
  let sent = 0;
  let refused = 0;
  for (let i = 0; i < perSecond * seconds; i++) {
    const now = (i * 1_000) / perSecond;
    free = Math.min(20, free + takes / perSecond);
    while (answers.length > 0 && answers[0]!.at <= now) {
      if (answers.shift()!.taken) throttle.accept(now);
      else throttle.reject(now);
    }
    const refuses = throttle.refuses(now, random());
    if (!refuses) {
      answers.push({ at: now + 100, taken: free >= 1 });
      if (free >= 1) free--;
    }
    if (now < settleInFirst * 1_000) continue;
    if (refuses) refused++;
    else sent++;
  }
  const counted = seconds - settleInFirst;
  return { sent: sent / counted, refused: refused / counted };
}

describe('the rule', () => {
  test('refuses nothing while the target takes more than one in k', () => {
    const throttle = new Throttle({ k: 2, windowMs: 30_000 });
    for (let i = 0; i < 100; i++) throttle.accept(0);
    for (let i = 0; i < 100; i++) throttle.reject(0);
    expect(throttle.refuses(0, 0)).toBe(false);
    throttle.reject(0);
    expect(throttle.chance(0)).toBe(1 / 202);
    expect(throttle.refuses(0, 1 / 202)).toBe(false);
    expect(throttle.refuses(0, 0)).toBe(true);
  });

  test('throttling counts its own rejections', () => {
    const throttle = new Throttle({ k: 2, windowMs: 30_000 });
    for (let i = 0; i < 3; i++) throttle.reject(0);
    expect(throttle.chance(0)).toBe(3 / 4);
    throttle.refuses(0, 0);
    expect(throttle.chance(0)).toBe(4 / 5);
  });

  test('what it sends does not grow with what is offered', () => {
    for (const offered of [400, 1_000, 10_000]) {
      const { sent, refused } = load(2, offered, 100);
      expect(sent).toBeGreaterThan(200 * 0.98);
      expect(sent).toBeLessThan(200 * 1.02);
      expect(sent + refused).toBeCloseTo(offered, 0);
    }
  });

  test('sends k times what is taken also where k is near 1', () => {
    const { sent } = load(1.1, 400, 100, 1_200, 600);
    expect(sent).toBeGreaterThan(104);
    expect(sent).toBeLessThan(116);
  });
});

describe('time', () => {
  test('a cold start does not lock: what is in flight is not held against the target', () => {
    expect(load(1.1, 280, 1_000, 60, 0).refused).toBe(0);
    expect(load(2, 5_000, 100_000, 10, 0).refused).toBe(0);
  });

  test('forgets after its window, and is not stale after idling', () => {
    const throttle = new Throttle({ k: 2, windowMs: 30_000 });
    for (let i = 0; i < 1_000; i++) throttle.reject(0);
    expect(throttle.chance(26_999)).toBeGreaterThan(0.9);
    expect(throttle.chance(30_000)).toBe(0);
    expect(throttle.refuses(3_600_000, 0)).toBe(false);
  });
});
