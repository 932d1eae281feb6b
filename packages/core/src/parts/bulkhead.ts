import { count, group } from '../fields.ts';
import { Bulkhead } from '../machines/bulkhead.ts';
import { definePart } from '../policy/part.ts';
import { addGuards, perTarget } from './per-target.ts';

/** Limits the attempts in flight at a target. Up to `queue` more attempts wait, ordered by priority. */
export const bulkhead = definePart({
  key: 'bulkhead',
  fields: { bulkhead: group({ concurrent: count(100, 1), queue: count(50, 0) }) },
  create({ bulkhead: settings }, plan) {
    if (!settings) return;
    addGuards(plan);
    perTarget(plan, 'member', (target) => {
      target.bulkhead = new Bulkhead({ concurrent: settings.concurrent, queueMax: settings.queue });
    });
  },
});
