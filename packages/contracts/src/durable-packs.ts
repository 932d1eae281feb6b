import { any, aws, grpc, http, kafka, network, type Pack, sql } from 'holdfast';

/** The errors of a policy that did not send a call. */
const refusals = /^HOLDFAST_(BREAKER_OPEN|BULKHEAD_FULL|RATE_LIMITED|THROTTLED)$/;
/** Temporary failures: timeouts, results that did not pass their check, and stores that are busy. */
const passing = /^HOLDFAST_(ATTEMPT_TIMEOUT|PATIENCE_SPENT|STEP_CHECK|\w+_(BUSY|FULL|UNAVAILABLE))$/;
/** A breaker that an operator holds open has no end time, so the call is tried again after 60 s at most. */
const refusedMaxMs = 60_000;

const ownErrors: Pack<'holdfast'> = {
  pack: 'holdfast',
  byDefault: true,
  classify(outcome) {
    if (outcome.ok) return undefined;
    if (isRefusal(outcome.error)) {
      const { retryAfterMs = 0 } = outcome.error as { retryAfterMs?: number };
      return { class: 'throttled', retryAfterMs: Math.min(retryAfterMs, refusedMaxMs), unprocessed: true };
    }
    return passing.test(codeOf(outcome.error)) ? 'transient' : undefined;
  },
};

/**
 * The packs (classifiers of errors) of work that is retried from a store. All are on by default, because a
 * handler or a step may call any kind of system. The pack `holdfast` classifies errors of policies with which
 * the work calls other systems: a call that was refused or timed out may succeed later.
 */
export const durablePacks = /* @__PURE__ */ makePacks();

function makePacks() {
  return [
    ownErrors,
    network,
    http,
    byDefault(sql),
    byDefault(grpc),
    byDefault(aws),
    byDefault(kafka),
    any,
  ] as const;
}

function byDefault<Name extends string>(pack: Pack<Name>): Pack<Name> {
  return { ...pack, byDefault: true };
}

/** True if a policy did not send a call, for example because a circuit breaker was open. */
export function isRefusal(error: unknown): boolean {
  return refusals.test(codeOf(error));
}

function codeOf(error: unknown): string {
  return String((Object(error) as { code?: unknown }).code);
}
