// Runs one operation of a store to its end, and tells each step: to be killed anywhere on the way.
import { operations } from '@holdfast/events';
import { openPlace, type Place } from '../events/place.ts';

const [placeText = '', id = ''] = process.argv.slice(2);
const engine = await openPlace(JSON.parse(placeText) as Place);
process.send?.('ready');
await operations({ engine }).run(id, { onProgress: ({ stage }) => void process.send?.(stage) });
await engine.close();
process.disconnect();
