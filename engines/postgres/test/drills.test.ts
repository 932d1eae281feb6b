import { describe, expect, test } from 'vitest';
import { killPlaces, killPoints } from '../../../drills/events/kill-plan.ts';
import { kills } from '../../../drills/events-kill.ts';
import { restarts } from '../../../drills/events-restart.ts';
import { ownService, titled } from '../../../scripts/services/service.ts';

const server = await ownService('postgres');
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
});
