import { setTimeout as pause } from 'node:timers/promises';
import { commit, consumer } from '@holdfast/events';
import { transient } from 'holdfast';
import { openPlace, type Place, writeEffect } from '../events/place.ts';

/** Handles events until it is killed or asked to stop, whatever its wall clock shows. */
const [json = '', lease = ''] = process.argv.slice(2);
const place: Place = JSON.parse(json);
const leaseMs = Number(lease);
const engine = await openPlace(place);

const worker = consumer<{ number: number }>({
  engine,
  topic: 'drill',
  name: 'drill@1',
  ordering: 'key',
  concurrency: 8,
  batchMax: 20,
  lease: leaseMs,
  policy: { attempts: 1000, backoff: { base: '2ms', cap: '20ms' } },
  async handler({ id, key = '', payload: { number } }) {
    const roll = Math.random();
    if (roll < 0.2) throw transient(new Error('not now'));
    // Some hold their lease while the clock jumps.
    await pause(roll < 0.25 ? leaseMs / 2 : Math.random() * 10);
    return commit((tx) => writeEffect(place, tx, { eventId: id, lane: key, number }));
  },
});
await worker.start();
process.send?.('ready');
process.once('message', async () => {
  await worker.stop();
  await engine.close();
  process.exit();
});
process.once('disconnect', () => process.exit());
