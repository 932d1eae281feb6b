import { expect, test } from 'vitest';
import { kills } from '../../../drills/events-kill.ts';

test('processes are killed at every step, and nothing is lost, repeated or out of order', {
  timeout: 180_000,
}, async () => {
  const counts = await kills('sqlite', 20);
  expect(counts).toMatchObject({ kills: 20, lost: 0, repeated: 0, outOfOrder: 0 });
  expect(counts.events).toBeGreaterThan(0);
});
