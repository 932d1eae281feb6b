import { count, duration, group, rate } from '../fields.ts';
import { Gcra } from '../machines/gcra.ts';
import { definePart } from '../policy/part.ts';
import { addGuards, perTarget } from './per-target.ts';

/** Limits the rate of attempts at a target. An attempt above the rate waits for its turn, or is refused. */
export const limiter = definePart({
  key: 'limiter',
  fields: {
    limiter: group({
      rate: rate('50/s'),
      burst: count(100, 1),
      /**
       * The longest wait for a turn; 0 refuses immediately. No wait is longer than the patience (the time limit of the
       * work) that is left.
       */
      wait: duration('0ms', { unlimited: Infinity }),
    }),
  },
  create({ limiter: settings }, plan) {
    if (!settings) return;
    addGuards(plan, false);
    plan.limiterWaitMs = settings.wait;
    perTarget(plan, 'member', (target) => {
      target.limiter = new Gcra({ ratePerMs: settings.rate, burst: settings.burst });
    });
  },
});
