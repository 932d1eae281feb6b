import { asDelayMs, type Delay } from './backoff.ts';
import type { Judgement } from './outcome.ts';
import type { StopReason, Verdict } from './verdict.ts';

/** The settings of a policy that a decision needs. They do not change. */
export interface Rules {
  readonly attempts: number;
  readonly delay: Delay;
  /** The longest server hint that is followed; a longer one ends the work. 0: hints are ignored. */
  readonly hintCapMs: number;
}

/** What has happened to this piece of work so far. */
export interface History {
  /** Attempts made, the one just judged included. */
  readonly attempt: number;
  readonly previousDelayMs: number;
  readonly patienceEndsAt: number;
  /** False: an attempt is repeated only with proof that it was not processed. */
  readonly idempotent: boolean;
  /** The reason why this work must not be repeated at all, if there is one. */
  readonly retryVeto: StopReason | undefined;
}

/** The state at the moment of the decision. */
export interface Facts {
  readonly now: number;
  /** A random number in [0, 1). */
  readonly roll: number;
  /** Tokens in the retry budget. */
  readonly tokens: number;
  /** How long an attempt usually takes; 0 while unknown. */
  readonly expectedAttemptMs: number;
  /** When the next attempt would be admitted: `now` unless the breakers of all targets are open. Infinity: do not wait. */
  readonly admitsAt: number;
}

/** The smallest base of the backoff after a throttled attempt: the target needs more time than after a failure. */
const throttledBaseMs = 1000;

/** The most jitter that is added to a server's hint. */
const hintSpreadMaxMs = 60_000;

export const done: Verdict = { kind: 'done' };

/** What to do after an attempt. Pure: the same arguments give the same verdict, here, in a queue and in the simulator. */
export function decide(rules: Rules, history: History, judged: Judgement, facts: Facts): Verdict {
  if (judged.class === 'ok') return done;
  if (judged.class === 'ignored') return stop('cancelled');
  if (judged.class === 'fatal') return stop('not_retryable');
  if (judged.retryNever) return stop('server_said_stop');
  if (history.retryVeto) return stop(history.retryVeto);
  if (!history.idempotent && !judged.unprocessed) return stop('not_idempotent');
  if (history.attempt >= rules.attempts) return stop('attempts_exhausted');

  const hintMs = rules.hintCapMs > 0 ? asDelayMs(judged.retryAfterMs ?? 0) : 0;
  if (hintMs > rules.hintCapMs) return stop('server_said_stop');

  const baseMinMs = judged.class === 'throttled' ? throttledBaseMs : 0;
  const backoffMs = rules.delay(history.attempt, history.previousDelayMs, facts.roll, baseMinMs);
  const leftMs = history.patienceEndsAt - facts.now - facts.expectedAttemptMs;
  // A server's hint is a minimum: jitter at most doubles it and never shortens it. Jitter takes at most half of the patience
  // after the hint, so that it never makes the wait too long and leaves time for the attempt.
  const jitterMs = facts.roll * Math.max(0, Math.min(hintMs, hintSpreadMaxMs, (leftMs - hintMs) / 2));
  const delayMs = Math.max(hintMs + jitterMs, asDelayMs(backoffMs), facts.admitsAt - facts.now);
  if (facts.admitsAt === Infinity) return stop('breaker_open');
  if (delayMs >= leftMs) return stop('patience_too_short');
  if (facts.tokens < 1) return stop('budget_exhausted');

  return { kind: 'retry', at: facts.now + delayMs, delayMs, because: judged.class, costs: 1 };
}

function stop(because: StopReason): Verdict {
  return { kind: 'give_up', because };
}
