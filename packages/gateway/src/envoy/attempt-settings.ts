import { budget, hedge, retry } from 'holdfast';
import { readTable } from 'holdfast/fields';
import type { AttemptsConfig } from '../file/gateway-config.ts';

/** What Envoy can be told of a policy. */
export interface AttemptSettings {
  readonly attempts: number;
  readonly backoffBaseMs: number;
  readonly backoffCapMs: number;
  /** A retry waits at least as long as `Retry-After` says, up to this time. */
  readonly hintCapMs: number;
  /** The share of retries; undefined: there is no budget. */
  readonly budgetRatio: number | undefined;
  /** How long a single attempt has until the response begins. */
  readonly attemptTimeoutMs: number;
  /** A second attempt is sent beside the first after this time; undefined: never. */
  readonly hedgeAfterMs: number | undefined;
}

const fields = {
  attempts: retry.fields.attempts,
  backoff: retry.fields.backoff,
  respectServer: retry.fields.respectServer,
  budget: budget.fields.budget,
  hedge: hedge.fields.hedge,
};

/** A file can say `unlimited`; Envoy needs a number. */
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
