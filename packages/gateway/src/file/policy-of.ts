import { type Policy, type PolicySpec, policy } from 'holdfast';
import type { SettingsOf } from 'holdfast/fields';
import type { AttemptsConfig, CircuitBreakerConfig, OutlierEjectionConfig } from './gateway-config.ts';
import type { protectionFields } from './gateway-file.ts';

export type ReadProtections = {
  readonly [K in keyof typeof protectionFields]?: SettingsOf<typeof protectionFields>[K] | undefined;
};

const requestTimeoutMs = 30_000;
const connectTimeoutMs = 2_000;
const idleTimeoutMs = 300_000;

/**
 * Parts of a policy that the gateway does not run, because they can replace the result of a call. The gateway
 * has its own `fallback` instead.
 */
export const partsNotRun = ['cache', 'fallback', 'mode'] as const;

/**
 * Builds the policy of a route from its own blocks and those of its upstream. A missing block is off: without
 * `retry` there is one attempt.
 */
export function attemptsOf(
  own: ReadProtections,
  upstream: ReadProtections,
  outlierEjection: OutlierEjectionConfig | null,
  policyNamed: (name: string) => PolicySpec | undefined,
): AttemptsConfig {
  const retry = own.retry !== undefined ? own.retry : upstream.retry;
  const document = typeof retry === 'string' ? policyNamed(retry) : retry;
  const block = own.circuitBreaker !== undefined ? own.circuitBreaker : upstream.circuitBreaker;
  const hedge = own.hedge !== undefined ? own.hedge : upstream.hedge;
  const timeouts = { ...withoutAbsent(upstream.timeouts), ...withoutAbsent(own.timeouts) };
  const circuitBreaker: CircuitBreakerConfig | null = block
    ? {
        failureThreshold: block.failureThreshold,
        timeoutMs: block.timeout,
        halfOpenRequests: block.halfOpenRequests,
        failureRatio: block.failureRatio,
        windowMs: block.window,
        minimumRequests: block.minimumRequests,
      }
    : null;
  // A hedge is a second attempt, so at least two attempts must be allowed.
  const single: PolicySpec = hedge ? { attempts: 2 } : { attempts: 1, budget: false };
  const { name: _, ...given } = (document ?? single) as PolicySpec;
  const spec: PolicySpec = {
    ...given,
    patience: patienceOf(timeouts.request) ?? given.patience ?? requestTimeoutMs,
    attemptTimeout:
      attemptTimeoutOf(timeouts.attempt) ?? given.attemptTimeout ?? (document ? 'auto' : 'none'),
    breaker: circuitBreaker ? breakerOf(circuitBreaker) : block === null ? false : (given.breaker ?? false),
    ...(hedge !== undefined && { hedge: hedge ? withoutAbsent(hedge) : false }),
    choice: outlierEjection
      ? {
          consecutive: outlierEjection.consecutive,
          ejectFor: [outlierEjection.ejectForMs, outlierEjection.maxEjectForMs],
        }
      : false,
  };
  const { plan }: Policy<PolicySpec> = policy(spec);
  return {
    policy: spec,
    isOwn: [own.retry, own.circuitBreaker, own.hedge, own.timeouts].some((each) => each !== undefined),
    hasOwnBreakers: own.circuitBreaker !== undefined,
    circuitBreaker,
    hasRetries: plan.attempts > 1,
    hasHedge: plan.hedge !== undefined,
    requestTimeoutMs: plan.patienceMs,
    attemptTimeoutMs: plan.attemptTimeoutMs,
    connectTimeoutMs: timeouts.connect ?? connectTimeoutMs,
    idleTimeoutMs: timeouts.idle ?? idleTimeoutMs,
  };
}

function breakerOf(block: CircuitBreakerConfig): NonNullable<PolicySpec['breaker']> {
  return {
    consecutive: block.failureThreshold,
    openFor: [block.timeoutMs, block.timeoutMs],
    probes: block.halfOpenRequests,
    failureRatio: block.failureRatio,
    window: block.windowMs,
    minimum: block.minimumRequests,
  };
}

function patienceOf(ms: number | undefined): PolicySpec['patience'] {
  return ms === Infinity ? 'unlimited' : ms;
}

function attemptTimeoutOf(ms: number | undefined): PolicySpec['attemptTimeout'] {
  if (ms === 0) return 'auto';
  return ms === Infinity ? 'none' : ms;
}

function withoutAbsent<T extends object>(given: T | null | undefined): Partial<T> {
  return Object.fromEntries(
    Object.entries(given ?? {}).filter(([, value]) => value !== undefined),
  ) as Partial<T>;
}
