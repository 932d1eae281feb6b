import { budget, hedge, retry } from 'holdfast';
import { readTable } from 'holdfast/fields';
import type { AttemptsConfig } from '../file/gateway-config.ts';

/** The settings of a policy that Envoy has as well. */
export interface AttemptSettings {
  readonly attempts: number;
  readonly backoffBaseMs: number;
  readonly backoffCapMs: number;
  /** A retry waits as long as `Retry-After` says, but at most this time. */
  readonly hintCapMs: number;
  /** The most retries, as a share of the requests. Undefined: there is no limit. */
  readonly budgetRatio: number | undefined;
  readonly attemptTimeoutMs: number;
  /** After this time, a second attempt runs beside the first one. Undefined: never. */
  readonly hedgeAfterMs: number | undefined;
}

const fields = {
  attempts: retry.fields.attempts,
  backoff: retry.fields.backoff,
  respectServer: retry.fields.respectServer,
  budget: budget.fields.budget,
  hedge: hedge.fields.hedge,
};

/** A gateway file can say `unlimited`, but Envoy needs a number. */
const attemptsMax = 100;

export function attemptSettings(config: AttemptsConfig): AttemptSettings {
  const { requestTimeoutMs, attemptTimeoutMs } = config;
  const given = config.policy as Readonly<Record<string, unknown>>;
  const known = Object.keys(fields).filter((name) => given[name] !== undefined);
  const read = readTable(fields, Object.fromEntries(known.map((name) => [name, given[name]])));
  const attempts = Math.min(read.attempts, attemptsMax);
  const waits = read.backoff as { base?: number; cap?: number } | null;
  const baseMs = Math.max(1, waits?.base ?? 1);
  const isLimited = attemptTimeoutMs > 0 && attemptTimeoutMs < Infinity;
  return {
    attempts,
    backoffBaseMs: baseMs,
    backoffCapMs: Math.max(baseMs, waits?.cap ?? baseMs),
    hintCapMs: read.respectServer?.cap ?? 0,
    budgetRatio: read.budget?.ratio,
    attemptTimeoutMs: isLimited
      ? Math.min(attemptTimeoutMs, requestTimeoutMs)
      : Math.ceil(requestTimeoutMs / attempts),
    hedgeAfterMs: read.hedge?.after,
  };
}
