// Runs one replay of a store, and tells how far it is: to be killed half-way.
import { operations } from '@holdfast/events';
import { openPlace } from '../events/place.ts';

export interface ReplayerReport {
  readonly stage: string;
  readonly released: number;
  readonly heapMegabytes: number;
}

const [place = '', id = ''] = process.argv.slice(2);
const engine = await openPlace(JSON.parse(place));
await operations({ engine }).run(id, {
  onProgress({ stage, counts: { released } }) {
    const heapMegabytes = process.memoryUsage().heapUsed / 1e6;
    process.send?.({ stage, released, heapMegabytes } satisfies ReplayerReport);
  },
});
await engine.close();
process.disconnect();
