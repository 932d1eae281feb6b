import { duration, type FieldsOf, group, number } from '../fields.ts';
import { Throttle } from '../machines/throttle.ts';
import { throttle as defaults } from '../policy/default-policy.ts';
import { definePart } from '../policy/part.ts';
import type { ThrottleFields } from '../policy/policy-spec.ts';
import { addGuards, perTarget } from './per-target.ts';

const fields = {
  throttle: group({ k: number(defaults.k, 1), window: duration(defaults.window, undefined, 1) }),
} satisfies FieldsOf<ThrottleFields>;

/**
 * The part `throttle`: sends about `k` requests for each request that the target accepts, and refuses the
 * others.
 */
export const throttle = definePart<typeof fields, ThrottleFields>({
  key: 'throttle',
  fields,
  create({ throttle: settings }, plan) {
    if (!settings) return;
    addGuards(plan, false);
    perTarget(plan, 'member', (target) => {
      target.throttle = new Throttle({ k: settings.k, windowMs: settings.window });
    });
  },
});
