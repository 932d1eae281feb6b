import type { Outcome } from '../decide/outcome.ts';
import type { Plan } from '../policy/plan.ts';
import { defineRules, isUnsafe } from './rule.ts';

/**
 * For these HTTP statuses, a retry would get the same answer again. 408, 425 and 429 are temporary, and 409
 * may be.
 */
const finalStatuses = [400, 401, 403, 404, 405, 410, 422];

/** Rules about which failures are retried, and how often. */
export const retryRules = /* @__PURE__ */ defineRules(
  {
    id: 'unsafe-operation',
    severity: 'error',
    sentence: 'An attempt that timed out may have been processed: the next one would do it twice.',
    fix: 'Send one idempotency key with all attempts, or set `idempotent: false` for each run.',
    check({ plan, facts }) {
      if (plan.attempts === 1 || !isUnsafe(facts)) return undefined;
      const what = facts.method ? `a ${facts.method.toUpperCase()}` : 'it';
      return { path: 'attempts', found: `${what} is tried up to ${plan.attempts} times` };
    },
    example: { spec: {}, facts: { method: 'POST', idempotent: false } },
    fixedBy: { facts: { runsKnow: true } },
  },
  {
    id: 'retries-4xx',
    severity: 'error',
    sentence: 'The server rejected the request as wrong; it will reject it again.',
    fix: 'Let the `http` pack classify responses, and return `transient` only for temporary failures.',
    check({ plan }) {
      const retried = finalStatuses.filter((status) => isRetried(plan, status));
      if (plan.attempts === 1 || retried.length === 0) return undefined;
      return { path: 'retryOn', found: `status ${retried.join(', ')} would be tried again` };
    },
    example: { spec: { retryOn: [notOk] } },
    fixedBy: { spec: { retryOn: [] } },
  },
  {
    id: 'retries-any',
    severity: 'warning',
    sentence: 'Mistakes in the program are retried like failures of the network, and are found later.',
    fix: 'Name the temporary failures: packs in `retryOn`, or errors marked with `transient`.',
    check({ plan, settings: { retryOn = [], retryOnly } }) {
      const isAny = (each: unknown) => each === 'any' || (each as { pack?: string }).pack === 'any';
      if (plan.attempts === 1 || !(retryOnly ?? retryOn).some(isAny)) return undefined;
      return { path: retryOnly ? 'retryOnly' : 'retryOn', found: 'every error is tried again' };
    },
    example: { spec: { retryOn: 'any' } },
    fixedBy: { spec: { retryOn: 'sql' } },
  },
  {
    id: 'never-on-network',
    severity: 'warning',
    sentence: 'When the network fails, `fetch` throws a TypeError, and that would not be retried.',
    fix: 'Leave `TypeError` out of `neverOn`: an error that no pack knows is not retried in any case.',
    check({ plan, settings: { neverOn = [] } }) {
      if (plan.attempts === 1 || !neverOn.includes(TypeError)) return undefined;
      return { path: 'neverOn', found: 'neverOn contains TypeError' };
    },
    example: { spec: { neverOn: [TypeError] } },
    fixedBy: { spec: { neverOn: [] } },
  },
  {
    id: 'ignores-hints',
    severity: 'warning',
    sentence: 'A server that says when to try again is called before that time.',
    fix: 'Follow it: `respectServer: true`.',
    check({ plan }) {
      if (plan.attempts === 1 || plan.hintCapMs > 0) return undefined;
      return { path: 'respectServer', found: 'Retry-After is not followed' };
    },
    example: { spec: { respectServer: false } },
    fixedBy: { spec: { respectServer: true } },
  },
  {
    id: 'attempts-unlimited',
    severity: 'advice',
    sentence: 'Only time and the budget limit how often a target is called for one piece of work.',
    fix: 'Set a number that is never reached in normal operation: `attempts: 10`.',
    check({ plan }) {
      return plan.attempts < Infinity ? undefined : { path: 'attempts', found: 'attempts: unlimited' };
    },
    example: { spec: { attempts: 'unlimited', patience: '1m' } },
    fixedBy: { spec: { attempts: 10 } },
  },
);

function isRetried(plan: Plan, status: number): boolean {
  const response = { status, statusCode: status, ok: false, headers: {} };
  const error = Object.assign(new Error(`status ${status}`), response, { response });
  const outcomes: Outcome[] = [{ ok: false, error }];
  if (plan.judgesValues) outcomes.push({ ok: true, value: response });
  return outcomes.some((outcome) => {
    const judged = plan.classify(outcome, () => 0);
    const outcomeClass = typeof judged === 'object' ? judged.class : judged;
    return outcomeClass === 'transient' || outcomeClass === 'throttled';
  });
}

/** An example of a common mistake: this classifier retries every response that is not ok, even a 404. */
function notOk(outcome: Outcome): 'transient' | undefined {
  const response = (outcome.ok ? outcome.value : outcome.error) as { ok?: boolean } | undefined;
  return response?.ok === false ? 'transient' : undefined;
}
