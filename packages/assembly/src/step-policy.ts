import { durablePacks } from '@holdfast/contracts';
import {
  type BackoffSpec,
  type Clock,
  type CustomBackoff,
  definePolicy,
  type ErrorClass,
  type PackName,
  type Policy,
  type Random,
  type RespectServerSpec,
  type RetryOn,
  retry,
  type SpecOfParts,
} from 'holdfast';

const parts = [retry, ...durablePacks] as const;
const make = /* @__PURE__ */ definePolicy(parts);

type Whole = SpecOfParts<typeof parts>;
type PackNames = PackName | 'holdfast';

/** How a step is retried. It has no `patience` field, because the patience of the assembly applies. */
export interface StepPolicySpec {
  /** The name of this policy in lists, notices and stories. Default: none, and the policy is not listed. */
  name?: string | undefined;
  /** The most attempts, the first included. Default: `6`; for `undo` without end. */
  attempts?: number | 'unlimited' | undefined;
  /**
   * The waits between attempts. `false`: no waits. A function returns the wait in ms. Default: exponential
   * with full jitter, from 500 ms to ten minutes; for `undo` from a second to an hour.
   */
  backoff?: boolean | BackoffSpec | CustomBackoff | undefined;
  /**
   * More failures that are retried, in addition to those that the packs classify: names of packs, packs, or
   * functions that classify an outcome. Default: none; for `undo` all.
   */
  retryOn?: RetryOn<PackNames> | readonly RetryOn<PackNames>[] | undefined;
  /**
   * Like `retryOn`, but replaces the packs: only these failures, and errors that are marked as retryable, are
   * retried. Default: not set.
   */
  retryOnly?: RetryOn<PackNames> | readonly RetryOn<PackNames>[] | undefined;
  /** Error classes that are never retried, whatever the packs say. Default: none. */
  neverOn?: ErrorClass | readonly ErrorClass[] | undefined;
  /** Whether the step waits as long as a server asks for, such as by `Retry-After`. Default: on. */
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

/** The default policy of `undo`. A compensation must succeed, so it is retried practically without end. */
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

/** Compiles a policy once per spec object: a program passes the same object in each run. */
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
