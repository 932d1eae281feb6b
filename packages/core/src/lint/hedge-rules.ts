import { round } from '../explain/format-duration.ts';
import { defineRules, isUnsafe } from './rule.ts';

const extraLoadMax = 0.1;

/** Rules about hedges: second attempts that are sent while the first is still in flight. */
export const hedgeRules = /* @__PURE__ */ defineRules(
  {
    id: 'hedge-unsafe',
    severity: 'error',
    sentence: 'Two attempts run at once for an operation that must not run twice.',
    fix: 'Do not hedge it: `hedge: false`; or send one idempotency key with both.',
    check({ settings: { hedge }, facts }) {
      return hedge && isUnsafe(facts) ? { path: 'hedge', found: 'two attempts can be in flight' } : undefined;
    },
    example: { spec: { hedge: true }, facts: { method: 'POST' } },
    fixedBy: { spec: { hedge: false } },
  },
  {
    id: 'hedge-without-budget',
    severity: 'warning',
    sentence: 'Only their own small budget limits hedges, and nothing limits retries.',
    fix: 'Let successes pay for hedges as for retries: `budget: true`.',
    check({ settings: { hedge, budget } }) {
      if (!hedge || budget) return undefined;
      return { path: 'budget', found: 'hedges are on and the retry budget is off' };
    },
    example: { spec: { hedge: true, budget: false } },
    fixedBy: { spec: { budget: true } },
  },
  {
    id: 'hedge-load',
    severity: 'warning',
    sentence: 'Hedging is for the slowest few calls; for more of them it adds more load than it saves time.',
    fix: 'Spend less: `hedge: { extraLoad: 0.02 }`.',
    check({ settings: { hedge } }) {
      if (!hedge || hedge.extraLoad <= extraLoadMax) return undefined;
      return {
        path: 'hedge.extraLoad',
        found: `hedges may add ${round(100 * hedge.extraLoad)} % to the load`,
      };
    },
    example: { spec: { hedge: { extraLoad: 0.3 } } },
    fixedBy: { spec: { hedge: { extraLoad: 0.02 } } },
  },
  {
    id: 'hedge-without-attempts',
    severity: 'warning',
    sentence: 'A hedge is an attempt, and there is only one: nothing is ever hedged.',
    fix: 'Allow a second: `attempts: 2`.',
    check({ plan, settings: { hedge } }) {
      return hedge && plan.attempts === 1 ? { path: 'attempts', found: 'attempts: 1' } : undefined;
    },
    example: { spec: { hedge: true, attempts: 1 } },
    fixedBy: { spec: { attempts: 2 } },
  },
);
