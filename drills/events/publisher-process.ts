import { setTimeout as pause } from 'node:timers/promises';
import { Doom, doomed, UnderWay } from './doom.ts';
import { eventOf } from './event-of.ts';
import { isBroker, openPlace, type Place } from './place.ts';
import { openRecord } from './record.ts';

/** Publishes events, one batch after the other from `first` on, and puts on record what was answered. */
const [json = '', point = '', passes = '1', first = '0'] = process.argv.slice(2);
const place: Place = JSON.parse(json);
const doom = new Doom(point, Number(passes));
const underWay = new UnderWay(doom);
const record = await openRecord(place.record);
const engine = doomed(await openPlace(place, () => underWay.beforeCommit()), place, doom, underWay);
const batchSize = 5;
/** The most waiting events; more would only make the end of the drill long. */
const waitingMax = 200;
/** Between two batches. Counting is dear on a message broker. */
const restMs = isBroker(place.engine) ? 25 : 5;

let isOver = false;
process.once('message', () => {
  isOver = true;
});
process.once('disconnect', () => process.exit());
process.send?.('ready');

for (let number = Number(first); !isOver; number += batchSize) {
  const events = Array.from({ length: batchSize }, (_, index) => eventOf(number + index));
  await untilPublished(events);
  await record(`published ${number} ${number + batchSize}`);
  for (let waiting = waitingMax; waiting >= waitingMax && !isOver; ) {
    await pause(restMs);
    waiting = await countWaiting();
  }
}
await engine.close();
process.exit();

/** If the count cannot be read, the queue counts as full. */
async function countWaiting(): Promise<number> {
  try {
    const { ready, behind } = await engine.broker.counts('drill');
    return ready + behind;
  } catch (error) {
    process.send?.((error as { code?: string }).code ?? String(error));
    return waitingMax;
  }
}

/** Without an answer it is repeated, under the same ids: that is all that a publisher has to do. */
async function untilPublished(events: readonly ReturnType<typeof eventOf>[]): Promise<void> {
  for (;;) {
    try {
      await engine.broker.publish('drill', events);
      return;
    } catch (error) {
      const { code } = error as { code?: string };
      if (code !== undefined) process.send?.(code);
      await pause(5);
    }
  }
}
