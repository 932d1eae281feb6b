import { expect, test } from 'vitest';
import { killPlaces, killPoints } from '../../../drills/events/kill-plan.ts';
import { whyNoDisk } from '../../../drills/events/small-disk.ts';
import { full } from '../../../drills/events-full.ts';
import { kills } from '../../../drills/events-kill.ts';

const timeout = 180_000;
const noDisk = whyNoDisk();

test('processes are killed at every step: nothing is lost, repeated or out of order', {
  timeout,
}, async () => {
  const counts = await kills('sqlite', killPlaces);
  expect(counts).toMatchObject({ lost: 0, repeated: 0, outOfOrder: 0 });
  for (const point of killPoints) expect(counts[point], point).toBeGreaterThan(0);
  expect(counts.events).toBeGreaterThan(0);
});

test.skipIf(noDisk)(
  `the disk is full for a while: clear errors, and nothing is lost${noDisk ? ` (skipped: ${noDisk})` : ''}`,
  { timeout },
  async () => {
    const counts = await full('sqlite');
    expect(counts).toMatchObject({ lost: 0, repeated: 0, outOfOrder: 0 });
    expect(counts.refused).toBeGreaterThan(0);
  },
);
