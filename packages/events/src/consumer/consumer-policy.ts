import { durablePacks } from '@holdfast/contracts';
import {
  any,
  type BackoffSpec,
  type Clock,
  type CustomBackoff,
  definePolicy,
  type ErrorClass,
  OptionsError,
  type Pack,
  type PackName,
  type Policy,
  type Random,
  type RespectServerSpec,
  type RetryOn,
  retry,
  type SpecOfParts,
} from 'holdfast';
import { atPath } from 'holdfast/fields';

/**
 * Recognizes errors of optimistic locking: another process changed the data first. A retry can succeed,
 * because the handler then reads the data again.
 */
const conflict: Pack<'conflict'> = {
  pack: 'conflict',
  byDefault: true,
  classify: (outcome) =>
    !outcome.ok && conflicts.test(`${nameOf(outcome.error)} ${codeOf(outcome.error)}`)
      ? 'transient'
      : undefined,
};

const conflicts =
  /Optimistic\w*Lock|StaleObject|StaleState|VersionError|WrongExpectedVersion|ConcurrencyE|ConditionalCheckFailed|HOLDFAST_CONFLICT/;

/**
 * True if a policy did not send a call because its circuit breaker was open. Failures or an operator can open
 * a breaker.
 */
export function isBreakerOpen(error: unknown): boolean {
  return codeOf(error) === 'HOLDFAST_BREAKER_OPEN';
}

const parts = [retry, conflict, ...durablePacks] as const;
const make = /* @__PURE__ */ definePolicy(parts);

type Whole = SpecOfParts<typeof parts>;

type PackNames = PackName | 'holdfast' | 'conflict';

/** How a consumer retries events. There is no `patience` here, because each event has its own time limit. */
export interface ConsumerPolicySpec {
  /**
   * The name of this policy in lists, notices and attempt records. Default: none, and the policy is not
   * listed.
   */
  name?: string | undefined;
  /** The most attempts, including the first one. Default: `6`. */
  attempts?: number | 'unlimited' | undefined;
  /**
   * The delays between attempts. `false`: no delays. A function returns the delay in ms. Default: exponential
   * with full jitter, `base` 500 ms, `cap` 60 s.
   */
  backoff?: boolean | BackoffSpec | CustomBackoff | undefined;
  /**
   * More failures that are retried, besides those that the packs recognize: names of packs, packs, or
   * functions that classify an outcome. Default: none.
   */
  retryOn?: RetryOn<PackNames> | readonly RetryOn<PackNames>[] | undefined;
  /**
   * Like `retryOn`, but replaces the packs: only these failures, and errors that the code marks as retryable,
   * are retried. Default: not set.
   */
  retryOnly?: RetryOn<PackNames> | readonly RetryOn<PackNames>[] | undefined;
  /** Classes of errors that are never retried, even if a pack says that they can be. Default: none. */
  neverOn?: ErrorClass | readonly ErrorClass[] | undefined;
  /** Whether a retry waits as long as the server asks, for example in `Retry-After`. Default: on. */
  respectServer?: boolean | RespectServerSpec | undefined;
}

const defaults: Whole = {
  patience: 'unlimited',
  attempts: 6,
};
const defaultBackoff = { base: '500ms', factor: 2, cap: '60s', jitter: 'full' } as const;

export function consumerPolicy(
  spec: ConsumerPolicySpec,
  environment: { clock: Clock; random: Random },
): Policy<Whole> {
  if (typeof spec !== 'object') throw new OptionsError('policy', spec, 'a document');
  if ('patience' in spec) {
    throw new OptionsError(
      'policy.patience',
      spec.patience,
      'nothing: it is the patience of each event that counts',
    );
  }
  assertNoClasses('retryOn', spec.retryOn);
  assertNoClasses('retryOnly', spec.retryOnly);
  const { backoff } = spec;
  const isGroup = backoff === undefined || backoff === true || typeof backoff === 'object';
  const merged = isGroup ? { ...defaultBackoff, ...(typeof backoff === 'object' && backoff) } : backoff;
  return atPath('policy', () => make({ ...defaults, ...spec, backoff: merged }, environment));
}

/**
 * Throws if a class of errors is given instead of a function. The policy would call the class as a function.
 * That call would throw, and so no error would be retried.
 */
function assertNoClasses(field: 'retryOn' | 'retryOnly', given: ConsumerPolicySpec['retryOn']): void {
  for (const choice of [given].flat()) {
    if (typeof choice !== 'function' || !isClass(choice)) continue;
    throw new OptionsError(
      `policy.${field}`,
      `class ${choice.name}`,
      `a function such as (outcome) => (outcome.error instanceof ${choice.name} ? 'transient' : undefined)`,
    );
  }
}

function isClass(choice: object): boolean {
  const { prototype } = choice as { readonly prototype?: unknown };
  return choice === Error || prototype instanceof Error || /^class\b/.test(String(choice));
}

/** Creates policies that retry calls of the store. */
export const storePolicy = /* @__PURE__ */ definePolicy([retry, any]);

function nameOf(error: unknown): string {
  const thrown = Object(error) as { name?: unknown; constructor?: { name?: unknown } };
  return `${thrown.name} ${thrown.constructor?.name}`;
}

function codeOf(error: unknown): string {
  return String((Object(error) as { code?: unknown }).code);
}
