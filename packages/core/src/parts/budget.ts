import { duration, group, number } from '../fields.ts';
import { RetryBudget } from '../machines/budget.ts';
import { definePart } from '../policy/part.ts';
import { perTarget } from './per-target.ts';

/** How many retries a caller may add to its own traffic: a limit that holds for ten thousand small clients as it does for ten large ones. */
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
