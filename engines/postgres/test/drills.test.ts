import { describe, expect, test } from 'vitest';
import { killPlaces, killPoints } from '../../../drills/events/kill-plan.ts';
import { whyNoDisk } from '../../../drills/events/small-disk.ts';
import { full } from '../../../drills/events-full.ts';
import { kills } from '../../../drills/events-kill.ts';
import { restarts } from '../../../drills/events-restart.ts';
import { ownService, titled } from '../../../scripts/services/service.ts';

const server = await ownService('postgres');
const noDisk = whyNoDisk();
const nothingWrong = { lost: 0, repeated: 0, outOfOrder: 0 };

/** The long trials, shortened. */
describe.skipIf(server.missing)(titled('postgres, under drill', server), () => {
  test('loses and repeats nothing when its processes are killed', { timeout: 120_000 }, async () => {
    const counts = await kills('postgres', killPlaces);
    expect(counts).toMatchObject(nothingWrong);
    for (const point of killPoints) expect(counts[point], point).toBeGreaterThan(0);
  });

  test('loses and repeats nothing when the server is killed and restarted', {
    timeout: 120_000,
  }, async () => {
    if (server.missing !== undefined) return;
    expect(await restarts(server, 2)).toMatchObject({ restarts: 2, ...nothingWrong });
    await server.stop();
  });

  test.skipIf(noDisk)(
    titled('loses and repeats nothing when the disk of the server is full', { missing: noDisk }),
    { timeout: 120_000 },
    async () => {
      const counts = await full('postgres');
      expect(counts).toMatchObject(nothingWrong);
      expect(counts.refused).toBeGreaterThan(0);
    },
  );
});
