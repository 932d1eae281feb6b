import { asDelayMs, type Delay } from './backoff.ts';
import type { Judgement } from './outcome.ts';
import type { StopReason, Verdict } from './verdict.ts';

/** The settings of a policy that `decide` reads. */
export interface Rules {
  readonly attempts: number;
  readonly delay: Delay;
  /**
   * A server's hint (such as Retry-After) is followed up to this length; a longer hint ends the work. 0: hints are
   * ignored.
   */
  readonly hintCapMs: number;
}

/** What has happened so far to one piece of work: an operation with all its attempts. */
export interface History {
  /** The number of attempts made, including the one that has just ended. */
  readonly attempt: number;
  readonly previousDelayMs: number;
  /** When the time limit of the whole work (its patience) ends, on the scale of `Clock.now`. */
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
  /** The tokens in the retry budget. A retry costs one token. */
  readonly tokens: number;
  /** How long an attempt usually takes; 0 while that is unknown. */
  readonly expectedAttemptMs: number;
  /**
   * When the next attempt would be admitted: `now`, unless the breakers of all targets are open. Infinity: the work
   * ends instead.
   */
  readonly admitsAt: number;
}

/**
 * The smallest base of the backoff after a throttled attempt, because the target needs more time than after a failure.
 */
const throttledBaseMs = 1000;

/** The most ms of jitter that are added to a server's hint. */
const hintSpreadMaxMs = 60_000;

export const done: Verdict = { kind: 'done' };

/**
 * Decides what to do after an attempt. It is pure: the same arguments give the same verdict, also in a queue or a
 * simulator.
 */
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
  // A server's hint is a minimum: jitter is only added to the hint, at most as many ms as the hint itself. Jitter takes
  // at most half of the time between the hint and the end of patience, so that time for the attempt is left.
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
