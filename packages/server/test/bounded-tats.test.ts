import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BoundedTats } from '../src/rate-limit/bounded-tats.ts';
import { LocalLimits } from '../src/rate-limit/local-limits.ts';

/** After a garbage collection. */
function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}

describe('12. how many keys a limiter remembers', () => {
  test('a million callers take no more memory than `keysMax` allows', () => {
    const limits = new LocalLimits([{ name: 'a', ratePerMs: 100 / 60_000, burst: 100 }], 100_000);
    const before = heapUsed();
    let most = 0;
    for (let key = 0; key < 1_000_000; key++) {
      limits.take(
        `2001:db8:${(key >> 16).toString(16)}:${(key & 0xffff).toString(16)}::/64 /orders/:id/lines`,
        1,
        key / 100,
      );
      most = Math.max(most, limits.size);
    }
    expect(most).toBeLessThanOrEqual(100_001);
    expect(heapUsed() - before).toBeLessThan(32 * 1024 * 1024);
    expect(limits.size).toBeGreaterThan(0);
  });

  test('a flood of other keys does not reset a used limit', () => {
    const limits = new LocalLimits([{ name: 'a', ratePerMs: 1 / 60_000, burst: 1 }], 100);
    expect(limits.take('debtor', 1, 0).waitMs).toBe(0);
    for (let stranger = 0; stranger < 100_000; stranger++)
      limits.take(`stranger ${stranger}`, 1, stranger / 1000);
    expect(limits.take('debtor', 1, 101).waitMs).toBeGreaterThan(59_000);
  });

  test('when all places are taken by used limits, new keys share one', () => {
    const limits = new LocalLimits([{ name: 'a', ratePerMs: 1 / 60_000, burst: 1 }], 10);
    let passed = 0;
    for (let stranger = 0; stranger < 1_000; stranger++) {
      if (limits.take(`stranger ${stranger}`, 1, 0).waitMs === 0) passed++;
    }
    expect(passed).toBeLessThanOrEqual(11);
    expect(limits.size).toBeLessThanOrEqual(11);
  });

  test('never forgets a future TAT, and never holds more keys than allowed, on any history', () => {
    const step = fc.record({
      key: fc.integer({ min: 0, max: 40 }),
      owesMs: fc.integer({ min: 0, max: 50 }),
      passMs: fc.integer({ min: 0, max: 20 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), fc.integer({ min: 2, max: 20 }), (steps, keysMax) => {
        const tats = new BoundedTats(keysMax);
        const truth = new Map<string, number>();
        let now = 0;
        for (const { key, owesMs, passMs } of steps) {
          now += passMs;
          const name = `k${key}`;
          const tat = tats.of(name, now);
          tat.at = Math.max(tat.at, now) + owesMs;
          if (tats.peek(name) === tat.at) truth.set(name, tat.at);
          expect(tats.size).toBeLessThanOrEqual(2 * Math.max(1, Math.floor(keysMax / 2)));
          for (const [known, at] of truth) if (at > now) expect(tats.peek(known)).toBe(at);
        }
      }),
    );
  });
});
