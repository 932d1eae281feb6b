import type { RateLimits, RateRequest } from '@holdfast/contracts';
import { memoryEngine } from '@holdfast/contracts/memory';
import { virtualClock } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import { SharedLimits, type SharedLimitsSettings } from '../src/rate-limit/shared-limits.ts';

const policy = { name: 'default', ratePerMs: 0.1, burst: 10 };

function setup(settings: Partial<SharedLimitsSettings> = {}, nodes = 1) {
  const clock = virtualClock();
  const { rateLimits } = memoryEngine({ clock });
  let asked = 0;
  const counted: RateLimits = {
    ...rateLimits,
    take(requests: readonly RateRequest[]) {
      asked += requests.length;
      return rateLimits.take(requests);
    },
  };
  const all = {
    timeoutMs: 25,
    whenUnavailable: 'share',
    nodes,
    keysMax: 100,
    lease: null,
    ...settings,
  } as const;
  const limits = Array.from({ length: nodes }, () => new SharedLimits([policy], counted, all, clock));
  const take = async (node = 0, key = 'k') => (await limits[node]!.take(key, 1, clock.now())).waitMs;
  return { clock, take, asked: () => asked };
}

describe('limits that several processes share', () => {
  test('are one limit', async () => {
    const { take } = setup({}, 3);
    let passed = 0;
    for (let time = 0; time < 30; time++) if ((await take(time % 3)) === 0) passed++;
    expect(passed).toBe(10);
  });

  test('refuse clients that ignore Retry-After without a call of the store', async () => {
    const { take, asked, clock } = setup();
    for (let time = 0; time < 11; time++) await take();
    expect(asked()).toBe(11);
    expect(await take()).toBeGreaterThan(0);
    expect(asked()).toBe(11);
    await clock.advance(11);
    expect(await take()).toBe(0);
    expect(asked()).toBe(12);
  });

  test('lend tokens to busy keys: fewer questions, and never more than there are', async () => {
    const { take, asked, clock } = setup({ lease: { tokensMax: 8, forMs: 100 } }, 2);
    let passed = 0;
    for (let ms = 0; ms < 1000; ms++) {
      for (const node of [0, 1]) if ((await take(node)) === 0) passed++;
      await clock.advance(1);
    }
    // The burst and what came meanwhile; what was borrowed and not used in time is lost.
    expect(passed).toBeLessThanOrEqual(110);
    expect(passed).toBeGreaterThan(85);
    expect(asked()).toBeLessThan(450);
  });

  test('a key that is seldom used borrows nothing', async () => {
    const { take, asked, clock } = setup({ lease: { tokensMax: 8, forMs: 100 } });
    for (let time = 0; time < 5; time++) {
      expect(await take()).toBe(0);
      await clock.advance(200);
    }
    expect(asked()).toBe(5);
  });
});
