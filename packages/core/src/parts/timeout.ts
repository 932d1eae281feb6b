import { duration } from '../fields.ts';
import { AutoTimeout } from '../machines/auto-timeout.ts';
import { Latency } from '../machines/latency.ts';
import { definePart } from '../policy/part.ts';
import { OptionsError } from '../report/errors.ts';
import { addGuards, perTarget } from './per-target.ts';

const AUTO = 0;
const SPLIT = -1;

/**
 * The time limit of one attempt. `auto` learns it from the durations of attempts. `split` divides the remaining
 * patience (the time limit of the whole work) equally. `none` leaves only patience. At the limit the signal of the
 * attempt is aborted, and its result is ignored.
 */
export const timeout = definePart({
  key: 'timeout',
  fields: { attemptTimeout: duration('auto', { auto: AUTO, split: SPLIT, none: Infinity }, 1) },
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
