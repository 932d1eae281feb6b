import {
  any,
  aws,
  type Clock,
  definePolicy,
  grpc,
  http,
  kafka,
  network,
  OptionsError,
  type Pack,
  type Policy,
  type Random,
  retry,
  type SpecOfParts,
  sql,
} from 'holdfast';

/**
 * Classifies lost optimistic locks as transient: `ConflictError`, and the error names of common libraries. A retry can
 * succeed, because the handler then reads the data again.
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
 * Classifies errors of the policies with which the handler calls other systems. A call that was refused or timed out
 * may succeed when the event is retried.
 */
const ownRefusals: Pack<'holdfast'> = {
  pack: 'holdfast',
  byDefault: true,
  classify(outcome) {
    if (outcome.ok) return undefined;
    const code = codeOf(outcome.error);
    if (refusals.test(code)) {
      const { retryAfterMs = 0 } = outcome.error as { retryAfterMs?: number };
      // If an operator holds a breaker open, `retryAfterMs` is Infinity. Retry every 60 s in that case.
      return { class: 'throttled', retryAfterMs: Math.min(retryAfterMs, refusedMaxMs), unprocessed: true };
    }
    return passing.test(code) ? 'transient' : undefined;
  },
};

/**
 * The codes of temporary errors: timeouts, and stores that are busy, full or unavailable (a handler may publish
 * events).
 */
const passing = /^HOLDFAST_(ATTEMPT_TIMEOUT|PATIENCE_SPENT|\w+_(BUSY|FULL|UNAVAILABLE))$/;
const refusedMaxMs = 60_000;
const refusals = /^HOLDFAST_(BREAKER_OPEN|BULKHEAD_FULL|RATE_LIMITED|THROTTLED)$/;

/**
 * True if a policy refused a call of the handler, for example because its breaker is open. Nothing was sent, so no
 * attempt is counted.
 */
export function isRefusal(error: unknown): boolean {
  return refusals.test(codeOf(error));
}

/** All error classifiers are used by default, because a handler may call any kind of system. */
const packs = [
  ownRefusals,
  conflict,
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

/** How a consumer retries. It has no `patience`, because the producer sets the patience of each event. */
export type ConsumerPolicySpec = Omit<Whole, 'patience'>;

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
  const { backoff } = spec;
  const isGroup = backoff === undefined || backoff === true || typeof backoff === 'object';
  const merged = isGroup ? { ...defaultBackoff, ...(typeof backoff === 'object' && backoff) } : backoff;
  return make({ ...defaults, ...spec, backoff: merged }, environment);
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
