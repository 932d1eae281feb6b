import { count, duration, type FieldsOf, group, rate } from '../fields.ts';
import { Gcra } from '../machines/gcra.ts';
import { limiter as defaults } from '../policy/default-policy.ts';
import { definePart } from '../policy/part.ts';
import type { LimiterFields } from '../policy/policy-spec.ts';
import { addGuards, perTarget } from './per-target.ts';

const fields = {
  limiter: group({
    rate: rate(defaults.rate),
    burst: count(defaults.burst, 1),
    wait: duration(defaults.wait, { unlimited: Infinity }),
  }),
} satisfies FieldsOf<LimiterFields>;

/**
 * The part `limiter`: limits the rate of attempts at a target. An attempt above the rate waits, or is
 * refused.
 */
export const limiter = definePart<typeof fields, LimiterFields>({
  key: 'limiter',
  fields,
  create({ limiter: settings }, plan) {
    if (!settings) return;
    addGuards(plan, false);
    plan.limiterWaitMs = settings.wait;
    perTarget(plan, 'member', (target) => {
      target.limiter = new Gcra({ ratePerMs: settings.rate, burst: settings.burst });
    });
  },
});
