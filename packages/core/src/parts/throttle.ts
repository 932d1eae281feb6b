import { duration, group, number } from '../fields.ts';
import { Throttle } from '../machines/throttle.ts';
import { definePart } from '../policy/part.ts';
import { addGuards, perTarget } from './per-target.ts';

/**
 * Sends fewer requests to a target that accepts fewer: about `k` requests for each accepted one. The other requests are
 * refused here.
 */
export const throttle = definePart({
  key: 'throttle',
  fields: { throttle: group({ k: number(2, 1), window: duration('30s', undefined, 1) }) },
  create({ throttle: settings }, plan) {
    if (!settings) return;
    addGuards(plan, false);
    perTarget(plan, 'member', (target) => {
      target.throttle = new Throttle({ k: settings.k, windowMs: settings.window });
    });
  },
});
