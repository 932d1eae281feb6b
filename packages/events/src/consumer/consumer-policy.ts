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
 * Lost optimistic locks: our own `ConflictError`, and the error names of common libraries. They are transient, because the
 * handler reads the data again on a retry.
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

/** Errors of holdfast policies that the handler used. A refused or timed-out call may succeed when the event is retried. */
const ownRefusals: Pack<'holdfast'> = {
  pack: 'holdfast',
  byDefault: true,
  classify(outcome) {
    if (outcome.ok) return undefined;
    const code = codeOf(outcome.error);
    if (refusals.test(code)) {
      const { retryAfterMs = 0 } = outcome.error as { retryAfterMs?: number };
      // A breaker that an operator holds open names Infinity: retry every 60 s.
      return { class: 'throttled', retryAfterMs: Math.min(retryAfterMs, refusedMaxMs), unprocessed: true };
    }
    return passing.test(code) ? 'transient' : undefined;
  },
};

/** Timeouts, and errors of stores that are unavailable, full or locked (a handler may publish). */
const passing = /^HOLDFAST_(ATTEMPT_TIMEOUT|PATIENCE_SPENT|\w+_(BUSY|FULL|UNAVAILABLE))$/;
const refusedMaxMs = 60_000;
const refusals = /^HOLDFAST_(BREAKER_OPEN|BULKHEAD_FULL|RATE_LIMITED|THROTTLED)$/;

/** True when a policy refused the call: nothing was sent, so no attempt is counted. */
export function isRefusal(error: unknown): boolean {
  return refusals.test(codeOf(error));
}

/** All packs, because a handler may call anything. */
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

/** How a consumer retries. Without patience: that is given with each event when it is published. */
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

/** Retries calls of the store. */
export const storePolicy = /* @__PURE__ */ definePolicy([retry, any]);

function nameOf(error: unknown): string {
  const thrown = Object(error) as { name?: unknown; constructor?: { name?: unknown } };
  return `${thrown.name} ${thrown.constructor?.name}`;
}

function codeOf(error: unknown): string {
  return String((Object(error) as { code?: unknown }).code);
}
