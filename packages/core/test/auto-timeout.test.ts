import { describe, expect, test } from 'vitest';
import { AutoTimeout } from '../src/auto-timeout.ts';
import { Latency } from '../src/latency.ts';

function setup() {
  const latency = new Latency();
  const timeout = new AutoTimeout(latency);
  const answer = (ms: number, times = 1) => {
    for (let i = 0; i < times; i++) {
      latency.record(0, ms);
      timeout.settle(ms, true, false);
    }
  };
  const fail = (times = 1) => {
    for (let i = 0; i < times; i++) timeout.settle(1, false, false);
  };
  /** After whatever was its limit. */
  const giveUp = (times = 1) => {
    for (let i = 0; i < times; i++) timeout.settle(timeout.limitMs(10_000, 4), false, true);
  };
  return { latency, timeout, answer, fail, giveUp };
}

describe('while little is known', () => {
  test('shares the patience among the attempts that are left', () => {
    const { timeout, answer } = setup();
    expect(timeout.limitMs(10_000, 4)).toBe(2_500);
    expect(timeout.limitMs(9_000, 3)).toBe(3_000);
    expect(timeout.limitMs(1_000, 1)).toBe(1_000);
    answer(10, 999);
    expect(timeout.limitMs(10_000, 4)).toBe(2_500);
    answer(10);
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
    answer(100, 10);
    answer(20, 1_990);
    expect(timeout.limitMs(10_000, 4)).toBeGreaterThan(285);
    expect(timeout.limitMs(10_000, 4)).toBeLessThan(315);
  });

  test('never waits longer than patience, nor otherwise less than 50 ms', () => {
    const { timeout, answer } = setup();
    answer(5, 1_000);
    expect(timeout.limitMs(10_000, 4)).toBe(50);
    expect(timeout.limitMs(30, 4)).toBe(30);
  });

  test('the last attempt has all the patience that is left', () => {
    const { timeout, answer } = setup();
    answer(5, 1_000);
    expect(timeout.limitMs(10_000, 2)).toBe(50);
    expect(timeout.limitMs(9_900, 1)).toBe(9_900);
  });

  test('a failure that came quickly teaches nothing', () => {
    const { timeout, latency, answer, fail } = setup();
    answer(100, 2_000);
    const before = timeout.limitMs(10_000, 4);
    for (let i = 0; i < 100; i++) {
      answer(100, 19);
      fail();
    }
    expect(timeout.limitMs(10_000, 4)).toBe(before);
    expect(latency.samples).toBe(3_900);
  });
});

describe('when attempts are given up', () => {
  test('messages that are lost now and then do not make it grow', () => {
    const { timeout, answer, giveUp } = setup();
    answer(100, 2_000);
    const before = timeout.limitMs(10_000, 4);
    for (let i = 0; i < 500; i++) {
      giveUp();
      answer(100, 9);
    }
    expect(timeout.limitMs(10_000, 4)).toBe(before);
  });

  test('it doubles with each one after the other, up to a share of what is left', () => {
    const { timeout, answer, giveUp } = setup();
    answer(100, 2_000);
    const before = timeout.limitMs(10_000, 4);
    giveUp();
    expect(timeout.limitMs(10_000, 4)).toBe(2 * before);
    giveUp();
    expect(timeout.limitMs(10_000, 4)).toBe(4 * before);
    giveUp(10);
    expect(timeout.limitMs(10_000, 4)).toBe(2_500);
    answer(100);
    expect(timeout.limitMs(10_000, 4)).toBe(before);
  });

  test('many that were sent under one limit double it once', () => {
    const { timeout, answer } = setup();
    answer(100, 2_000);
    const before = timeout.limitMs(10_000, 4);
    for (let i = 0; i < 64; i++) timeout.settle(before, false, true);
    expect(timeout.limitMs(10_000, 4)).toBe(2 * before);
  });

  test('a target that became slow for good is soon given the time it needs', () => {
    const { latency, timeout, answer } = setup();
    answer(100, 2_000);
    let givenUp = 0;
    for (let i = 0; i < 1_000; i++) {
      const limitMs = timeout.limitMs(10_000, 4);
      if (limitMs < 1_000) {
        givenUp++;
        timeout.settle(limitMs, false, true);
      } else {
        latency.record(0, 1_000);
        timeout.settle(1_000, true, false);
      }
    }
    expect(givenUp).toBeLessThan(10);
    expect(timeout.limitMs(10_000, 4)).toBeGreaterThan(2_900);
  });
});
