import { duration, group, number } from '../fields.ts';
import { RetryBudget } from '../machines/budget.ts';
import { Latency } from '../machines/latency.ts';
import type { Target } from '../machines/target.ts';
import { definePart } from '../policy/part.ts';
import { OptionsError } from '../report/errors.ts';
import type { Work } from '../run/work.ts';
import { addGuards, perTarget } from './per-target.ts';

/** Decides when a hedge, a second attempt beside the first, may be sent. */
export interface HedgeRules {
  /** When to send a hedge for an attempt that is sent at `now`. Infinity: never. */
  at(work: Work, target: Target, now: number): number;
  /**
   * Takes a token from the retry budget and one from the hedge budget. Returns false if one of the budgets has no
   * token.
   */
  may(work: Work, now: number): boolean;
  /** Returns the tokens to both budgets, because the hedge was not sent. */
  refund(work: Work): void;
}

/** With fewer samples of the latency than this, no hedge is sent at a percentile. */
const samplesMin = 100;

/**
 * Sends a second attempt (a hedge) when the first is slow, takes the first answer and cancels the other attempt. This
 * is only for work that may be repeated, and for at most `extraLoad` of the traffic. Each hedge also takes a token from
 * the retry budget.
 */
export const hedge = definePart({
  key: 'hedge',
  fields: {
    hedge: group({
      /**
       * The largest share of extra calls. By default it sets the delay, too: with 0.02, a hedge is sent at p98 of the
       * durations.
       */
      extraLoad: number(0.02, 0, 1),
      /** If set, the hedge is sent at this percentile (0–1) of the durations, whatever `extraLoad` is. */
      percentile: number(undefined, 0, 1),
      /** If set, the hedge is sent after this time, not at a percentile. */
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
