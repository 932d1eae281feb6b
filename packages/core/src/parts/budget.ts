import { duration, group, number } from '../fields.ts';
import { RetryBudget } from '../machines/budget.ts';
import { definePart } from '../policy/part.ts';
import { perTarget } from './per-target.ts';

/** Limits the retries that a caller adds to its own traffic. The limit is the same for 10,000 small clients and for 10 large ones. */
export const budget = definePart({
  key: 'budget',
  fields: { budget: group({ ratio: number(0.1, 0, 1), window: duration('10s', undefined, 1) }, true) },
  create({ budget: settings }, plan) {
    if (!settings) return;
    const { ratio, window: windowMs } = settings;
    plan.needsClock = true;
    perTarget(plan, 'pool', (target) => {
      target.budget = new RetryBudget({ ratio, windowMs, attempts: plan.attempts });
    });
    plan.budgetOf = ({ target, options }, now) => {
      const { budget } = target ?? plan.targetOf!(options, now);
      budget?.firstTry(now);
      return budget;
    };
  },
});
