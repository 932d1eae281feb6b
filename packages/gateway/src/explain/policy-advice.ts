import type { AttemptsConfig } from '../file/gateway-config.ts';

/** The findings of `lint` in `holdfast` whose advice a gateway file says in other fields than a policy does. */
const fixes: Readonly<Record<string, string>> = {
  unbounded: 'set how long the answer is still useful: `timeouts: { request: 1m }`',
  'no-timeout': 'limit attempts: `timeouts: { attempt: auto }` learns what is usual',
  'blind-to-slowness': 'let `timeouts: { attempt: auto }` learn what is usual',
  'timeout-below-p999':
    'raise `timeouts.attempt` above the p99.9, or let it learn: `timeouts: { attempt: auto }`',
  'attempts-exceed-patience':
    'shorten `timeouts.attempt`, make fewer `attempts` in `retry`, or raise `timeouts.request`',
  'base-above-patience': 'lower `backoff.base` in `retry`, or raise `timeouts.request`',
  'long-in-process': 'no client waits that long: `timeouts: { request: 1m }`',
  'no-budget': 'let successes pay for retries: `retry: { budget: true }`',
  'large-budget': 'a tenth is enough for failures that are few: `retry: { budget: { ratio: 0.1 } }`',
  'no-breaker': 'stop sending requests to it for a while: `circuitBreaker: true`',
  'hasty-breaker': 'wait for more: `circuitBreaker: { minimumRequests: 20, failureThreshold: 5 }`',
  'fixed-open-time': 'give it room to grow: `retry: { breaker: { openFor: [1s, 30s] } }`',
  'open-beyond-patience':
    'refuse at once, `retry: { breaker: { whenOpen: stop } }`, or raise `timeouts.request`',
  'tight-throttle': 'leave some room: `retry: { throttle: { k: 2 } }`',
  'large-burst': 'set a burst of a few seconds of the rate: `retry: { limiter: { burst: 10 } }`',
  'queue-too-long': 'shorten `bulkhead.queue` in `retry` to what can be served within `timeouts.request`',
  'hedge-without-budget': 'let successes pay for hedges as for retries: `retry: { budget: true }`',
  'hedge-load': 'spend less: `hedge: { extraLoad: 0.02 }`',
  'hedge-without-attempts': 'allow a second: `retry: { attempts: 2 }`',
  'ignores-hints': 'follow it: `retry: { respectServer: true }`',
  'attempts-unlimited': 'set a number that is never reached in normal operation: `retry: { attempts: 10 }`',
  'no-delay': 'give the backoff a base: `retry: { backoff: { base: 200ms } }`',
  'no-jitter': 'add jitter: `retry: { backoff: { jitter: full } }`',
  'no-cap': 'cap them: `retry: { backoff: { cap: 30s } }`',
  'retries-any': 'name the temporary failures: `retry: { retryOn: [http, network] }`',
};

const breakerFields: Readonly<Record<string, string>> = {
  'breaker.minimum': 'circuitBreaker.minimumRequests',
  'breaker.consecutive': 'circuitBreaker.failureThreshold',
};

/** Says the advice of a finding about a policy with the fields of a gateway file. */
export function adviceFor(rule: string, fix: string, { circuitBreaker, policy }: AttemptsConfig): string {
  if (rule === 'hasty-breaker' && !circuitBreaker)
    return 'wait for more: `retry: { breaker: { minimum: 20, consecutive: 5 } }`';
  // A learnt timeout is a share of the timeout of the request, so it needs one.
  if (rule === 'no-timeout' && policy.patience === 'unlimited')
    return 'limit requests and attempts: `timeouts: { request: 30s, attempt: auto }`';
  return fixes[rule] ?? `in the policy of \`retry\`: ${fix}`;
}

/** Returns the field of a gateway file that sets the field `path` of a policy. */
export function fieldFor(rule: string, path: string, { circuitBreaker, policy }: AttemptsConfig): string {
  if (path === 'patience') return 'timeouts.request';
  if (path === 'attemptTimeout' || path === 'breaker.slow') return 'timeouts.attempt';
  if (rule === 'no-breaker') return 'circuitBreaker';
  if (circuitBreaker && path.startsWith('breaker')) return breakerFields[path] ?? 'circuitBreaker';
  if (path.startsWith('hedge') && policy.hedge) return path;
  return `retry.${path}`;
}
