import {
  any,
  aws,
  type BackoffSpec,
  type Clock,
  type CustomBackoff,
  definePolicy,
  type ErrorClass,
  grpc,
  http,
  kafka,
  network,
  type Pack,
  type PackName,
  type Policy,
  type Random,
  type RespectServerSpec,
  type RetryOn,
  retry,
  type SpecOfParts,
  sql,
} from 'holdfast';

/**
 * Errors of the policies with which a step calls other systems. A call that was refused or timed out may succeed in the
 * next attempt of the step.
 */
const ownRefusals: Pack<'holdfast'> = {
  pack: 'holdfast',
  byDefault: true,
  classify(outcome) {
    if (outcome.ok) return undefined;
    const { code, retryAfterMs = 0 } = Object(outcome.error) as { code?: unknown; retryAfterMs?: number };
    if (/^HOLDFAST_(BREAKER_OPEN|BULKHEAD_FULL|RATE_LIMITED|THROTTLED)$/.test(String(code)))
      return { class: 'throttled', retryAfterMs: Math.min(retryAfterMs, refusedMaxMs), unprocessed: true };
    return passing.test(String(code)) ? 'transient' : undefined;
  },
};

/** Timeouts, stores that are busy, and a result that did not pass its check: the next one may. */
const passing = /^HOLDFAST_(ATTEMPT_TIMEOUT|PATIENCE_SPENT|STEP_CHECK|\w+_(BUSY|FULL|UNAVAILABLE))$/;
/** If an operator holds a breaker open, nobody knows until when: try again every 60 s. */
const refusedMaxMs = 60_000;

/** All packs are used by default, because a step may call any kind of system. */
const packs = [
  ownRefusals,
  network,
  http,
  { ...sql, byDefault: true },
  { ...grpc, byDefault: true },
  { ...aws, byDefault: true },
  { ...kafka, byDefault: true },
  any,
] as const;
const parts = [retry, ...packs] as const;
const make = /* @__PURE__ */ definePolicy(parts);

type Whole = SpecOfParts<typeof parts>;
type PackNames = PackName | 'holdfast';

/** How a step is retried. It has no `patience`, because that is the customer's. */
export interface StepPolicySpec {
  /** The name of this policy in lists, notices and stories. Default: none, and the policy is not listed. */
  name?: string | undefined;
  /** The most attempts, the first included. Default: `6`; of `undo` without end. */
  attempts?: number | 'unlimited' | undefined;
  /**
   * The waits between attempts. `false`: no waits. A function returns the ms itself. Default: exponential with full
   * jitter, from 500 ms to ten minutes; of `undo` from a second to an hour.
   */
  backoff?: boolean | BackoffSpec | CustomBackoff | undefined;
  /**
   * Which failures are worth another attempt besides those that the packs know: names of packs, packs, or functions that
   * classify an outcome. Default: none; of `undo` all.
   */
  retryOn?: RetryOn<PackNames> | readonly RetryOn<PackNames>[] | undefined;
  /** Like `retryOn`, but replaces the packs: only these failures and errors with a mark are tried again. Default: not set. */
  retryOnly?: RetryOn<PackNames> | readonly RetryOn<PackNames>[] | undefined;
  /** Classes of errors that are never retried, whatever the packs say. Default: none. */
  neverOn?: ErrorClass | readonly ErrorClass[] | undefined;
  /** Whether hints of a server on when to try again are followed. Default: on. */
  respectServer?: boolean | RespectServerSpec | undefined;
}

export interface PolicyEnvironment {
  readonly clock: Clock;
  readonly random: Random;
}

const stepDefaults: StepPolicySpec = {
  attempts: 6,
  backoff: { base: '500ms', factor: 2, cap: '10m', jitter: 'full' },
};

/** A compensation must succeed, so it is retried without end. */
const undoDefaults: StepPolicySpec = {
  attempts: 1_000_000,
  backoff: { base: '1s', factor: 2, cap: '1h', jitter: 'full' },
  retryOn: ['any'],
};

const compiled = new WeakMap<object, Policy>();

export function stepPolicy(
  given: StepPolicySpec | Policy | undefined,
  environment: PolicyEnvironment,
): Policy {
  return policyOf(given ?? stepDefaults, stepDefaults, environment);
}

export function undoPolicy(
  given: StepPolicySpec | Policy | undefined,
  environment: PolicyEnvironment,
): Policy {
  return policyOf(given ?? undoDefaults, undoDefaults, environment);
}

/** Documents are compiled once: a program gives the same one in each run. */
function policyOf(
  given: StepPolicySpec | Policy,
  defaults: StepPolicySpec,
  environment: PolicyEnvironment,
): Policy {
  if ('plan' in given) return given;
  const known = compiled.get(given);
  if (known?.plan.clock === environment.clock) return known;
  const policy = make({ ...defaults, ...given, patience: 'unlimited' } as Whole, environment) as Policy;
  compiled.set(given, policy);
  return policy;
}
