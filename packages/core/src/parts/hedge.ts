import { duration, type FieldsOf, group, number } from '../fields.ts';
import { RetryBudget } from '../machines/budget.ts';
import { Latency } from '../machines/latency.ts';
import type { Target } from '../machines/target.ts';
import { hedge as defaults } from '../policy/default-policy.ts';
import { definePart } from '../policy/part.ts';
import type { HedgeFields } from '../policy/policy-spec.ts';
import { OptionsError } from '../report/errors.ts';
import type { Work } from '../run/work.ts';
import { addGuards, perTarget } from './per-target.ts';

/** Decides when a hedge (a second attempt while the first is in flight) may be sent. */
export interface HedgeRules {
  /**
   * Returns when to send a hedge (a second attempt) for an attempt that is sent at `now`. Infinity: no hedge
   * is sent.
   */
  at(work: Work, target: Target, now: number): number;
  /**
   * Takes one token for a hedge (a second attempt) from each of two budgets: the retry budget and the hedge
   * budget. If one budget is empty, takes none and returns false.
   */
  may(work: Work, now: number): boolean;
  /**
   * Gives both budgets back the tokens that `may` took, because the hedge (a second attempt) was not sent.
   */
  refund(work: Work): void;
}

/** With fewer measured durations than this, a percentile is unreliable, so no hedge is sent because of it. */
const samplesMin = 100;

const fields = {
  hedge: group({
    extraLoad: number(defaults.extraLoad, 0, 1),
    percentile: number(undefined, 0, 1),
    after: duration(),
  }),
} satisfies FieldsOf<HedgeFields>;

/**
 * The part `hedge`: sends a second attempt (a hedge) when the first is slow. It uses the first answer and
 * cancels the other attempt. Only work that may be repeated is hedged, and each hedge costs a token of the
 * retry budget.
 */
export const hedge = definePart<typeof fields, HedgeFields>({
  key: 'hedge',
  fields,
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
