import { duration, group, number } from '../fields.ts';
import { RetryBudget } from '../machines/budget.ts';
import { Latency } from '../machines/latency.ts';
import type { Target } from '../machines/target.ts';
import { definePart } from '../policy/part.ts';
import { OptionsError } from '../report/errors.ts';
import type { Work } from '../run/work.ts';
import { addGuards, perTarget } from './per-target.ts';

/** When a second attempt may be started beside the first. */
export interface HedgeRules {
  /** When, for an attempt that is sent at `now`; Infinity: not at all. */
  at(work: Work, target: Target, now: number): number;
  /** Asks the budgets at that moment, and spends. */
  may(work: Work, now: number): boolean;
  /** It was not sent after all. */
  refund(work: Work): void;
}

/** Below this many samples a percentile says little, and nothing is hedged by one. */
const samplesMin = 100;

/**
 * Starts a second attempt when the first is slow, takes what answers first and cancels the other. Only for work that
 * may be repeated, never more than `extraLoad` of the traffic, and each one also takes a token of the retry budget.
 */
export const hedge = definePart({
  key: 'hedge',
  fields: {
    hedge: group({
      /** The share of extra calls one is ready to pay; the delay follows from it: 0.02 hedges at p98. */
      extraLoad: number(0.02, 0, 1),
      /** Hedges at this percentile (0–1) of what attempts take, instead. */
      percentile: number(undefined, 0, 1),
      /** Hedges after so long, instead. */
      after: duration(),
    }),
  },
  create({ hedge: settings }, plan) {
    if (!settings) return;
    const { extraLoad, percentile, after } = settings;
    if (percentile !== undefined && after !== undefined) {
      throw new OptionsError('hedge.percentile', percentile, 'either a percentile or a delay, not both');
    }
    const quantile = percentile ?? 1 - extraLoad;
    addGuards(plan, false);
    perTarget(plan, 'member', (target) => {
      target.latency ??= new Latency();
    });
    perTarget(plan, 'pool', (target) => {
      target.hedgeBudget = new RetryBudget({ ratio: extraLoad, windowMs: 10_000, attempts: 1 });
    });
    plan.hedge = {
      at(work, target, now) {
        work.target?.hedgeBudget?.firstTry(now);
        if (!work.idempotent || work.retryVeto || plan.killSwitch.isOn || work.attempt >= plan.attempts)
          return Infinity;
        if (after !== undefined) return now + after;
        const { latency } = target;
        return latency && latency.samples >= samplesMin ? now + latency.quantile(quantile) : Infinity;
      },
      may({ target }, now) {
        if (!target || (target.budget && target.budget.tokens(now) < 1)) return false;
        if (!target.hedgeBudget?.trySpend(now, 1)) return false;
        target.budget?.spend(now, 1);
        return true;
      },
      refund({ target }) {
        target?.hedgeBudget?.refund(1);
        target?.budget?.refund(1);
      },
    };
  },
});
