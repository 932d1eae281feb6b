import { setTimeout as pause } from 'node:timers/promises';
import { commit, consumer, snooze } from '@holdfast/events';
import { transient } from 'holdfast';
import { Doom, doomed, UnderWay } from './doom.ts';
import { isBroker, openPlace, type Place, writeEffect } from './place.ts';
import { openRecord } from './record.ts';

/** Handles events until it is killed, at a point or by chance, or asked to stop. */
const [json = '', point = '', passes = '1'] = process.argv.slice(2);
const place: Place = JSON.parse(json);
const doom = new Doom(point, Number(passes));
const underWay = new UnderWay(doom);
const record = await openRecord(place.record);
const opened = await openPlace(place, () => underWay.beforeCommit(), underWay.between);
const engine = doomed(opened, place, doom, underWay, async (ids) => {
  await Promise.all(ids.map((id) => record(`done ${id} ${process.pid}`)));
});
const hasTransaction = !isBroker(place.engine);
/** Longer than a heartbeat, shorter than a lease. A message broker is given time on a busy machine. */
const longMs = hasTransaction || !point.startsWith('extend') ? 200 : 1200;

const worker = consumer<{ number: number }>({
  engine,
  topic: 'drill',
  name: 'drill@1',
  ordering: 'key',
  concurrency: 8,
  batchMax: 30,
  lease: hasTransaction ? '400ms' : '3s',
  effects: hasTransaction ? 'commit' : 'once',
  // Here it is not the events that kill.
  deathsMax: 1_000_000,
  policy: { attempts: 1000, backoff: { base: '2ms', cap: '20ms' } },
  async handler({ id, key = '', payload: { number }, idempotencyKey, signal }) {
    if (!hasTransaction) await record(`begun ${id} ${process.pid}`);
    doom.at('handler.begun');
    const roll = Math.random();
    if (roll < 0.05) throw transient(new Error('not now'));
    if (roll < 0.07) return snooze('5ms');
    if (roll < 0.1) await pause(longMs);
    else if (roll < 0.2) await pause(Math.random() * 20);
    // No transaction refuses what comes too late: a handler has to look.
    if (!hasTransaction) signal.throwIfAborted();
    // Kept by another process, so it is an effect that no transaction can take back.
    await record(`effect ${id} ${key} ${number} ${idempotencyKey} ${process.pid}`);
    doom.at('handler.effect');
    if (roll > 0.97) throw transient(new Error('too late'));
    if (!hasTransaction) return undefined;
    return commit((tx) => {
      const written = writeEffect(place, tx, { eventId: id, lane: key, number });
      if (!written) return doom.at('settle.effect');
      return written.then(() => doom.at('settle.effect'));
    });
  },
});
await untilStarted();
process.send?.('ready');
process.once('message', async () => {
  await worker.stop();
  await engine.close();
  process.exit();
});
process.once('disconnect', () => process.exit());

/** A process that starts while the broker is away tries again. */
async function untilStarted(): Promise<void> {
  for (;;) {
    try {
      return await worker.start();
    } catch (error) {
      if (hasTransaction) throw error;
      await pause(50);
    }
  }
}
