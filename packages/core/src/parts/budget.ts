import { duration, type FieldsOf, group, number } from '../fields.ts';
import { RetryBudget } from '../machines/budget.ts';
import { budget as defaults } from '../policy/default-policy.ts';
import { definePart } from '../policy/part.ts';
import type { BudgetFields } from '../policy/policy-spec.ts';
import { perTarget } from './per-target.ts';

const fields = {
  budget: group(
    { ratio: number(defaults.ratio, 0, 1), window: duration(defaults.window, undefined, 1) },
    true,
  ),
} satisfies FieldsOf<BudgetFields>;

/** The part `budget`: limits the number of retries in proportion to successful calls. */
export const budget = definePart<typeof fields, BudgetFields>({
  key: 'budget',
  fields,
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
