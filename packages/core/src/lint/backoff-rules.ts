import { LEAST, MOST, waitsOf } from '../explain/delays.ts';
import { formatMs } from '../explain/format-duration.ts';
import { defineRules } from './rule.ts';

/** How many waits are checked. With this many, every usual backoff has reached its cap. */
const waitsMax = 64;
const waitMaxMs = 60_000;

/**
 * Rules about the waits between attempts. They call the backoff function itself, so they also check custom
 * functions.
 */
export const backoffRules = /* @__PURE__ */ defineRules(
  {
    id: 'no-delay',
    severity: 'error',
    sentence: 'Attempts follow each other at once, when the target is least able to take them.',
    fix: 'Give the backoff a base: `backoff: { base: "200ms" }`.',
    check({ plan }) {
      if (plan.attempts === 1 || waitsOf(plan, MOST, waitsMax).some((ms) => ms > 0)) return undefined;
      return { path: 'backoff', found: 'there is no wait before any attempt' };
    },
    example: { spec: { backoff: false } },
    fixedBy: { spec: { backoff: true } },
  },
  {
    id: 'no-jitter',
    severity: 'warning',
    sentence: 'Callers that failed at the same time retry at the same time, and fail together again.',
    fix: 'Add jitter: `backoff: { jitter: "full" }`.',
    check({ plan }) {
      const most = waitsOf(plan, MOST, waitsMax);
      const least = waitsOf(plan, LEAST, waitsMax);
      if (!most.some((ms) => ms > 0) || most.some((ms, index) => ms !== least[index])) return undefined;
      return { path: 'backoff.jitter', found: `the first wait is always ${formatMs(most[0] ?? 0)}` };
    },
    example: { spec: { backoff: { jitter: 'none' } } },
    fixedBy: { spec: { backoff: { jitter: 'full' } } },
  },
  {
    id: 'no-cap',
    severity: 'warning',
    sentence: 'Waits grow so long that the target has recovered long before the next attempt.',
    fix: 'Cap them: `backoff: { cap: "30s" }`; in a function, with `Math.min`.',
    check({ plan }) {
      const longest = Math.max(0, ...waitsOf(plan, MOST, waitsMax).filter((ms) => ms < Infinity));
      if (longest <= waitMaxMs) return undefined;
      return { path: 'backoff.cap', found: `a wait can become ${formatMs(longest)}` };
    },
    example: { spec: { attempts: 12, patience: '5m', backoff: { cap: '1h' } } },
    fixedBy: { spec: { backoff: { cap: '30s' } } },
  },
);
