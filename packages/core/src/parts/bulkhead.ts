import { count, type FieldsOf, group } from '../fields.ts';
import { Bulkhead } from '../machines/bulkhead.ts';
import { bulkhead as defaults } from '../policy/default-policy.ts';
import { definePart } from '../policy/part.ts';
import type { BulkheadFields } from '../policy/policy-spec.ts';
import { addGuards, perTarget } from './per-target.ts';

const fields = {
  bulkhead: group({ concurrent: count(defaults.concurrent, 1), queue: count(defaults.queue, 0) }),
} satisfies FieldsOf<BulkheadFields>;

/**
 * The part `bulkhead`: limits the attempts in flight at a target. Up to `queue` further attempts wait,
 * ordered by priority.
 */
export const bulkhead = definePart<typeof fields, BulkheadFields>({
  key: 'bulkhead',
  fields,
  create({ bulkhead: settings }, plan) {
    if (!settings) return;
    addGuards(plan);
    perTarget(plan, 'member', (target) => {
      target.bulkhead = new Bulkhead({ concurrent: settings.concurrent, queueMax: settings.queue });
    });
  },
});
