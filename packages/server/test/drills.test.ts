import { describe, expect, test } from 'vitest';
import { kills } from '../../../drills/idempotency-kill.ts';
import { overload } from '../../../drills/overload.ts';
import { outages } from '../../../drills/redis-outage.ts';
import { service, titled } from '../../../scripts/services/service.ts';

const [redis, postgres] = [await service('redis'), await service('postgres')];

describe('killed in the middle of an order', () => {
  test('on SQLite: executed once, whatever happened', { timeout: 60_000 }, async () => {
    expect(await kills('sqlite', 5)).toMatchObject({ killed: 5, effects: 5, repeatedEffects: 0, unknown: 0 });
  });

  test.skipIf(postgres.missing)(
    titled('on Postgres: executed once, whatever happened', postgres),
    { timeout: 90_000 },
    async () => {
      expect(await kills('postgres', 5)).toMatchObject({
        killed: 5,
        effects: 5,
        repeatedEffects: 0,
        unknown: 0,
      });
    },
  );

  test.skipIf(redis.missing)(
    titled('on Redis: never repeated in silence', redis),
    { timeout: 60_000 },
    async () => {
      const counts = await kills('redis', 5);
      expect(counts).toMatchObject({ killed: 5, repeatedEffects: 0 });
      expect(counts.unknown).toBeGreaterThan(0);
    },
  );
});

test.skipIf(redis.missing)(
  titled(
    'Redis hangs, dies and comes back: keys are refused meanwhile, and nothing is executed twice',
    redis,
  ),
  { timeout: 60_000 },
  async () => {
    const counts = await outages({ perSecond: 50, calmMs: 500, awayMs: 500, backMs: 1_500 });
    expect(counts.served).toBeGreaterThan(0);
    expect(counts.limitsWithoutStore).toBeGreaterThan(0);
  },
);

test('three times as much as it can do: served with protection, nothing in time without', {
  timeout: 60_000,
}, async () => {
  const size = { calmSeconds: 1, overloadSeconds: 5, afterSeconds: 1, changedSeconds: 1 };
  const guarded = await overload(size, 3, false, true);
  const bare = await overload(size, 3, false, false);
  expect(guarded.goodputPerSecond).toBeGreaterThan(5 * bare.goodputPerSecond + 100);
  expect(guarded.criticalServed).toBeGreaterThan(bare.criticalServed);
});
