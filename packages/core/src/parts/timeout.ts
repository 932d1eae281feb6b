import { duration, type FieldsOf } from '../fields.ts';
import { AutoTimeout } from '../machines/auto-timeout.ts';
import { Latency } from '../machines/latency.ts';
import { attemptTimeout as defaultTimeout } from '../policy/default-policy.ts';
import { definePart } from '../policy/part.ts';
import type { TimeoutFields } from '../policy/policy-spec.ts';
import { OptionsError } from '../report/errors.ts';
import { addGuards, perTarget } from './per-target.ts';

const AUTO = 0;
const SPLIT = -1;

const fields = {
  attemptTimeout: duration(defaultTimeout, { auto: AUTO, split: SPLIT, none: Infinity }, 1),
} satisfies FieldsOf<TimeoutFields>;

/**
 * The part `timeout`: the time limit of one attempt. `auto` learns it from past attempts, `split` divides the
 * time limit of the work equally, `none` sets no limit. At the limit, the signal of the attempt is aborted
 * and its result is ignored.
 */
export const timeout = definePart<typeof fields, TimeoutFields>({
  key: 'timeout',
  fields,
  create({ attemptTimeout: limitMs = AUTO }, plan) {
    if (limitMs > 0 && limitMs < Infinity && limitMs >= plan.patienceMs) {
      throw new OptionsError('attemptTimeout', limitMs, `less than the patience of ${plan.patienceMs} ms`);
    }
    addGuards(plan);
    plan.needsClock ||= limitMs < Infinity;
    plan.attemptTimeoutMs = Math.max(0, limitMs);
    perTarget(plan, 'member', (target) => {
      if (limitMs !== AUTO) return;
      target.latency ??= new Latency();
      target.autoTimeout = new AutoTimeout(target.latency);
    });
  },
});
