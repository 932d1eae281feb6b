// Runs one replay of a store, and tells how far it is: to be killed half-way.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { operations } from '@holdfast/events';
import { openPlace } from '../events/place.ts';

export interface ReplayerReport {
  readonly stage: string;
  readonly released: number;
  readonly heapMegabytes: number;
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
/** Above this, garbage is collected first, because only what is still in use counts. */
const UNCOLLECTED_MAX_MEGABYTES = 80;

function heapMegabytes(): number {
  if (process.memoryUsage().heapUsed / 1e6 > UNCOLLECTED_MAX_MEGABYTES) collectGarbage();
  return process.memoryUsage().heapUsed / 1e6;
}

const [place = '', id = ''] = process.argv.slice(2);
const engine = await openPlace(JSON.parse(place));
await operations({ engine }).run(id, {
  onProgress({ stage, counts: { released } }) {
    process.send?.({ stage, released, heapMegabytes: heapMegabytes() } satisfies ReplayerReport);
  },
});
await engine.close();
process.disconnect();
