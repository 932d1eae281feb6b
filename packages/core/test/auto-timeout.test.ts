import { describe, expect, test } from 'vitest';
import { AutoTimeout } from '../src/machines/auto-timeout.ts';
import { Latency } from '../src/machines/latency.ts';

/** The share of an attempt with 10 s of patience and four attempts left. */
const shareMs = 2_500;

function setup() {
  const latency = new Latency();
  const timeout = new AutoTimeout(latency);
  const answer = (ms: number, times = 1) => {
    for (let i = 0; i < times; i++) {
      timeout.settle(ms, true, false, shareMs);
      latency.record(0, ms);
    }
  };
  const fail = (times = 1) => {
    for (let i = 0; i < times; i++) timeout.settle(1, false, false, shareMs);
  };
  /** After whatever was its limit. */
  const timeOut = (times = 1) => {
    for (let i = 0; i < times; i++) timeout.settle(timeout.limitMs(10_000, 4), false, true, shareMs);
  };
  return { latency, timeout, answer, fail, timeOut };
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
    expect(timeout.limitMs(10_000, 4)).toBeLessThan(65);
  });

  test('an attempt has at least twice the longest answer of the last minutes', () => {
    const { timeout, latency, answer } = setup();
    answer(3_000);
    answer(100, 10);
    expect(timeout.limitMs(10_000, 4)).toBe(6_000);
    answer(8_000);
    expect(timeout.limitMs(10_000, 4)).toBe(10_000);
    // Two generations of five minutes later nobody remembers it.
    latency.record(300_000, 100);
    latency.record(600_000, 100);
    expect(timeout.limitMs(10_000, 4)).toBe(2_500);
  });

  test('the first timeout lifts the limit, and an answer within it takes that back', () => {
    const { timeout, answer, fail, timeOut } = setup();
    answer(100);
    timeOut();
    expect(timeout.isLifted).toBe(true);
    fail();
    expect(timeout.isLifted).toBe(true);
    answer(3_000);
    expect(timeout.isLifted).toBe(true);
    answer(100);
    expect(timeout.isLifted).toBe(false);
  });

  test('a timeout of an attempt that had less than the limit lifts nothing', () => {
    const { timeout } = setup();
    timeout.settle(500, false, true, shareMs);
    expect(timeout.isLifted).toBe(false);
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

  test('and six times the median, so that a steady service may become five times slower', () => {
    const { timeout, answer } = setup();
    answer(300, 1_000);
    expect(timeout.limitMs(10_000, 4)).toBeGreaterThan(5 * 300);
    expect(timeout.limitMs(10_000, 4)).toBeLessThan(7 * 300);
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

describe('when attempts time out', () => {
  test('messages that are lost now and then do not make it grow', () => {
    const { timeout, answer, timeOut } = setup();
    answer(100, 2_000);
    const before = timeout.limitMs(10_000, 4);
    for (let i = 0; i < 500; i++) {
      timeOut();
      answer(100, 9);
    }
    expect(timeout.limitMs(10_000, 4)).toBe(before);
  });

  test('it doubles with each one after the other, up to a share of what is left', () => {
    const { timeout, answer, timeOut } = setup();
    answer(100, 2_000);
    const before = timeout.limitMs(10_000, 4);
    timeOut();
    expect(timeout.limitMs(10_000, 4)).toBe(2 * before);
    timeOut();
    expect(timeout.limitMs(10_000, 4)).toBe(4 * before);
    timeOut(10);
    expect(timeout.limitMs(10_000, 4)).toBe(2_500);
    answer(100);
    expect(timeout.limitMs(10_000, 4)).toBe(before);
  });

  test('many that were sent under one limit double it once', () => {
    const { timeout, answer } = setup();
    answer(100, 2_000);
    const before = timeout.limitMs(10_000, 4);
    for (let i = 0; i < 64; i++) timeout.settle(before, false, true, shareMs);
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
        timeout.settle(limitMs, false, true, shareMs);
      } else {
        latency.record(0, 1_000);
        timeout.settle(1_000, true, false, shareMs);
      }
    }
    expect(givenUp).toBeLessThan(10);
    expect(timeout.limitMs(10_000, 4)).toBeGreaterThan(2_900);
  });
});
