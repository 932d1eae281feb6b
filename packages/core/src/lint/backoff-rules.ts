import { LEAST, MOST, waitsOf } from '../explain/delays.ts';
import { sayMs } from '../explain/format-duration.ts';
import { defineRules } from './rule.ts';

/** As far as waits are followed: whatever grows has grown by then. */
const waitsMax = 64;
const waitMaxMs = 60_000;

/** How far apart attempts are. They ask the backoff itself, so that they hold for functions, too. */
export const backoffRules = /* @__PURE__ */ defineRules(
  {
    id: 'no-delay',
    severity: 'error',
    sentence: 'Attempts follow each other at once, when the target is least able to take them.',
    fix: 'Give the backoff a base: `backoff: { base: "200ms" }`.',
    check({ plan }) {
      if (plan.attempts === 1 || waitsOf(plan, MOST, waitsMax).some((ms) => ms > 0)) return undefined;
      return { path: 'backoff', found: 'no attempt is ever waited for' };
    },
    example: { spec: { backoff: false } },
    fixedBy: { spec: { backoff: true } },
  },
  {
    id: 'no-jitter',
    severity: 'warning',
    sentence: 'Callers that failed together come back together, and fail together again.',
    fix: 'Leave the waits to chance: `backoff: { jitter: "full" }`.',
    check({ plan }) {
      const most = waitsOf(plan, MOST, waitsMax);
      const least = waitsOf(plan, LEAST, waitsMax);
      if (!most.some((ms) => ms > 0) || most.some((ms, index) => ms !== least[index])) return undefined;
      return { path: 'backoff.jitter', found: `the first wait is always ${sayMs(most[0] ?? 0)}` };
    },
    example: { spec: { backoff: { jitter: 'none' } } },
    fixedBy: { spec: { backoff: { jitter: 'full' } } },
  },
  {
    id: 'no-cap',
    severity: 'warning',
    sentence: 'Waits grow so long that the target has long been well when the next attempt comes.',
    fix: 'Cap them: `backoff: { cap: "30s" }`; in a function, with `Math.min`.',
    check({ plan }) {
      const longest = Math.max(0, ...waitsOf(plan, MOST, waitsMax).filter((ms) => ms < Infinity));
      if (longest <= waitMaxMs) return undefined;
      return { path: 'backoff.cap', found: `a wait can become ${sayMs(longest)}` };
    },
    example: { spec: { attempts: 12, patience: '5m', backoff: { cap: '1h' } } },
    fixedBy: { spec: { backoff: { cap: '30s' } } },
  },
);
