import { expect, test } from 'vitest';
import { outage } from '../../../drills/http-outage.ts';
import { drill as soak } from '../../../drills/http-soak.ts';

test('a soak leaves nothing behind', { timeout: 60_000 }, async () => {
  const counts = await soak({ times: 4_000 });
  expect(counts).toMatchObject({
    requests: 4_000,
    listeners: 0,
    leftSockets: 0,
    leftTimers: 0,
    repeatedPosts: 0,
  });
});

test('an outage is not made worse, and ends for everybody', { timeout: 60_000 }, async () => {
  const counts = await outage({ clients: 20, everyMs: 100, calmMs: 1_000, downMs: 1_500, afterMs: 15_000 });
  expect(counts.repeatedPosts).toBe(0);
});
