import { formatMs, round } from '../explain/format-duration.ts';
import { defineRules } from './rule.ts';

const ratioMax = 0.3;
const kMin = 1.1;
/**
 * A burst may contain at most the attempts that the rate allows in this many ms. With a larger burst, more
 * than 1.5 times the rate could be sent within one minute.
 */
const burstMaxMs = 30_000;

/** Rules about the load that a policy puts on a failing target. */
export const loadRules = /* @__PURE__ */ defineRules(
  {
    id: 'no-budget',
    severity: 'warning',
    sentence:
      'In an outage every caller multiplies its load by its attempts, which is what keeps the outage going.',
    fix: 'Let successes pay for retries: `budget: true`.',
    check({ plan, settings: { budget } }) {
      if (plan.attempts === 1 || budget) return undefined;
      const times = plan.attempts < Infinity ? `${plan.attempts} times` : 'any number of times';
      return { path: 'budget', found: `in an outage the target gets the load ${times}` };
    },
    example: { spec: { budget: false } },
    fixedBy: { spec: { budget: true } },
  },
  {
    id: 'large-budget',
    severity: 'warning',
    sentence: 'A target that is overloaded gets much more load on top.',
    fix: 'A tenth is enough for failures that are few: `budget: { ratio: 0.1 }`.',
    check({ plan, settings: { budget } }) {
      if (plan.attempts === 1 || !budget || budget.ratio <= ratioMax) return undefined;
      return { path: 'budget.ratio', found: `retries may add ${round(100 * budget.ratio)} % to the load` };
    },
    example: { spec: { budget: { ratio: 0.5 } } },
    fixedBy: { spec: { budget: { ratio: 0.1 } } },
  },
  {
    id: 'no-breaker',
    severity: 'warning',
    sentence: 'A target that is down is called again and again, and every caller waits for the failure.',
    fix: 'Stop calling it for a while: `breaker: true`.',
    check({ plan, settings: { breaker } }) {
      if (plan.attempts === 1 || breaker) return undefined;
      return { path: 'breaker', found: 'nothing stops calls to a target that is down' };
    },
    example: { spec: { breaker: false } },
    fixedBy: { spec: { breaker: true } },
  },
  {
    id: 'hasty-breaker',
    severity: 'warning',
    sentence: 'A single failure stops all calls, and single failures are what retries are for.',
    fix: 'Wait for more: `breaker: { minimum: 20, consecutive: 5 }`.',
    check({ settings: { breaker } }) {
      if (breaker?.minimum === 1)
        return { path: 'breaker.minimum', found: 'one failed call of one opens it' };
      if (breaker?.consecutive !== 1) return undefined;
      return { path: 'breaker.consecutive', found: 'one failed call opens it' };
    },
    example: { spec: { breaker: { minimum: 1 } } },
    fixedBy: { spec: { breaker: { minimum: 20 } } },
  },
  {
    id: 'fixed-open-time',
    severity: 'advice',
    sentence: 'The open time does not grow: a long outage is probed as often as a short one.',
    fix: 'Give it room to grow: `breaker: { openFor: ["1s", "30s"] }`.',
    check({ settings: { breaker } }) {
      if (!breaker) return undefined;
      const [least, most = least] = breaker.openFor;
      return least === most ? { path: 'breaker.openFor', found: 'the shortest is the longest' } : undefined;
    },
    example: { spec: { breaker: { openFor: '10s' } } },
    fixedBy: { spec: { breaker: { openFor: ['1s', '30s'] } } },
  },
  {
    id: 'open-beyond-patience',
    severity: 'warning',
    sentence: 'An attempt waits for the breaker, which stays open for longer than patience.',
    fix: 'Refuse at once, `breaker: { whenOpen: "stop" }`, or raise `patience`.',
    check({ plan, settings: { breaker } }) {
      // Jitter shortens the open time by half at most.
      const leastMs = (breaker?.openFor[0] ?? 0) / 2;
      if (breaker?.whenOpen !== 'wait' || leastMs < plan.patienceMs) return undefined;
      return { path: 'breaker.whenOpen', found: 'no wait for the breaker can fit into patience' };
    },
    example: { spec: { patience: '1s', breaker: { whenOpen: 'wait', openFor: ['5s', '30s'] } } },
    fixedBy: { spec: { breaker: { openFor: ['500ms', '30s'] } } },
  },
  {
    id: 'tight-throttle',
    severity: 'warning',
    sentence: 'A target that fails now and then is refused calls that it would have taken.',
    fix: 'Leave some room: `throttle: { k: 2 }`.',
    check({ settings: { throttle } }) {
      if (!throttle || throttle.k >= kMin) return undefined;
      return { path: 'throttle.k', found: `k is ${throttle.k}` };
    },
    example: { spec: { throttle: { k: 1 } } },
    fixedBy: { spec: { throttle: { k: 2 } } },
  },
  {
    id: 'large-burst',
    severity: 'warning',
    sentence: 'After a pause the burst is so large that it exceeds a quota per minute.',
    fix: 'Set a burst of a few seconds of the rate: `limiter: { burst: 10 }`.',
    check({ settings: { limiter } }) {
      if (!limiter || limiter.burst / limiter.rate <= burstMaxMs) return undefined;
      const worthMs = limiter.burst / limiter.rate;
      return {
        path: 'limiter.burst',
        found: `a burst of ${limiter.burst} is worth ${formatMs(worthMs)} of the rate`,
      };
    },
    example: { spec: { limiter: { rate: '100/m' } } },
    fixedBy: { spec: { limiter: { burst: 10 } } },
  },
  {
    id: 'observes-only',
    severity: 'advice',
    sentence: 'The policy counts what it would do, and does nothing.',
    fix: 'When its counts look right, enforce it: `mode: { enforce: 0.1 }`, then `mode: "enforce"`.',
    check({ settings: { mode } }) {
      const isIdle = mode === 'observe' || (typeof mode === 'object' && mode.enforce === 0);
      return isIdle ? { path: 'mode', found: 'no work is protected' } : undefined;
    },
    example: { spec: { mode: 'observe' } },
    fixedBy: { spec: { mode: 'enforce' } },
  },
);
