import { describe, expect, test } from 'vitest';
import { AutoTimeout } from '../src/auto-timeout.ts';
import { Latency } from '../src/latency.ts';

const MINUTE = 60_000;

function setup() {
  const latency = new Latency();
  const timeout = new AutoTimeout(latency);
  const answer = (now: number, ms: number, times = 1) => {
    for (let i = 0; i < times; i++) {
      latency.record(now, ms);
      timeout.settle(now, ms, true, false);
    }
  };
  const fail = (now: number, times = 1) => {
    for (let i = 0; i < times; i++) timeout.settle(now, 1, false, false);
  };
  const giveUp = (now: number, times = 1) => {
    for (let i = 0; i < times; i++) timeout.settle(now, timeout.limitMs(10_000, 4), false, true);
  };
  return { latency, timeout, answer, fail, giveUp };
}

describe('while little is known', () => {
  test('shares the patience among the attempts that are left', () => {
    const { timeout, answer } = setup();
    expect(timeout.limitMs(10_000, 4)).toBe(2_500);
    expect(timeout.limitMs(9_000, 3)).toBe(3_000);
    expect(timeout.limitMs(1_000, 1)).toBe(1_000);
    answer(0, 10, 999);
    expect(timeout.limitMs(10_000, 4)).toBe(2_500);
    answer(0, 10);
    expect(timeout.limitMs(10_000, 4)).toBe(50);
  });

  test('unlimited attempts have a tenth of the patience each', () => {
    expect(setup().timeout.limitMs(10_000, Infinity)).toBe(1_000);
  });

  test('without patience there is no limit', () => {
    expect(setup().timeout.limitMs(Infinity, 4)).toBe(Infinity);
  });
});

describe('once it is known how long calls take', () => {
  test('waits three times what all but one in a thousand need', () => {
    const { timeout, answer } = setup();
    answer(0, 100, 10);
    answer(0, 20, 1_990);
    expect(timeout.limitMs(10_000, 4)).toBeGreaterThan(285);
    expect(timeout.limitMs(10_000, 4)).toBeLessThan(315);
  });

  test('never waits longer than patience, nor otherwise less than 50 ms', () => {
    const { timeout, answer } = setup();
    answer(0, 5, 1_000);
    expect(timeout.limitMs(10_000, 4)).toBe(50);
    expect(timeout.limitMs(30, 4)).toBe(30);
  });

  test('grows when it is too short for a few', () => {
    const { timeout, answer, giveUp } = setup();
    answer(0, 100, 2_000);
    const before = timeout.limitMs(10_000, 4);
    for (let i = 0; i < 20; i++) {
      answer(0, 100, 30);
      giveUp(0);
    }
    expect(timeout.limitMs(10_000, 4)).toBeGreaterThan(5 * before);
  });

  test('a failure that came quickly teaches nothing', () => {
    const { timeout, latency, answer, fail } = setup();
    answer(0, 100, 2_000);
    const before = timeout.limitMs(10_000, 4);
    for (let i = 0; i < 100; i++) {
      answer(0, 100, 19);
      fail(0);
    }
    expect(timeout.limitMs(10_000, 4)).toBe(before);
    expect(latency.samples).toBe(3_900);
  });
});

describe('in an outage', () => {
  test('the figure is frozen while more than a tenth of the attempts fail', () => {
    const { timeout, answer, giveUp } = setup();
    answer(0, 100, 2_000);
    const before = timeout.limitMs(10_000, 4);
    giveUp(0, 6);
    expect(timeout.limitMs(10_000, 4)).toBe(before);
    giveUp(1, 500);
    expect(timeout.limitMs(10_000, 4)).toBe(before);
    answer(2, 100, 100);
    expect(timeout.limitMs(10_000, 4)).toBe(before);
    answer(3, 100, 100);
    expect(timeout.limitMs(10_000, 4)).toBeGreaterThan(before);
  });

  test('a target that became slow for good is given more time within ten minutes', () => {
    const { timeout, answer, giveUp } = setup();
    answer(0, 100, 2_000);
    const before = timeout.limitMs(10_000, 4);
    giveUp(0, 10);
    for (let now = 0; now < 10 * MINUTE; now += 100) giveUp(now);
    expect(timeout.limitMs(10_000, 4)).toBe(before);
    giveUp(10 * MINUTE);
    expect(timeout.limitMs(10_000, 4)).toBeGreaterThan(5 * before);
  });
});
