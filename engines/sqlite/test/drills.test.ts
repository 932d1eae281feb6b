import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { killPlaces, killPoints } from '../../../drills/events/kill-plan.ts';
import { whyNoDisk } from '../../../drills/events/small-disk.ts';
import { whyNoFakeWall } from '../../../drills/events-clock/fake-wall.ts';
import { clockJumps } from '../../../drills/events-clock.ts';
import { full } from '../../../drills/events-full.ts';
import { kills } from '../../../drills/events-kill.ts';

const timeout = 180_000;
const noDisk = whyNoDisk();
const noFakeWall = tryFakeWall();

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

test.skipIf(noFakeWall)(
  `wall clocks jump by 25 h: nothing is stuck, parked, lost, repeated or out of order${noFakeWall ? ` (skipped: ${noFakeWall})` : ''}`,
  { timeout },
  async () => {
    const counts = await clockJumps({ times: 1, leaseMs: 1000, stopMs: 3000 });
    expect(counts).toMatchObject({ stuck: 0, parked: 0, lost: 0, repeated: 0, outOfOrder: 0 });
    expect(counts.jumps).toBeGreaterThan(0);
  },
);

/** Why no process can have a wall clock of its own. On a build machine with Linux that is a failure. */
function tryFakeWall(): string | undefined {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-wall-'));
  try {
    const missing = whyNoFakeWall(folder);
    if (missing !== undefined && process.env.CI === 'true' && process.platform === 'linux')
      throw new Error(missing);
    return missing;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
