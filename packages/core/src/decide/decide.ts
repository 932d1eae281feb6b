import { asDelayMs, type Delay } from './backoff.ts';
import type { Judgement } from './outcome.ts';
import type { StopReason, Verdict } from './verdict.ts';

/** The settings of a policy that `decide` reads. */
export interface Rules {
  readonly attempts: number;
  readonly delay: Delay;
  /**
   * The longest wait in ms that a server may ask for, for example with Retry-After. If a server asks for
   * more, the work ends. 0: what servers ask for is ignored.
   */
  readonly hintCapMs: number;
}

/** What has happened so far in one piece of work (one operation with all its attempts). */
export interface History {
  /** The number of attempts so far, including the one that has just ended. */
  readonly attempt: number;
  readonly previousDelayMs: number;
  /** When the time limit of the whole work ends, on the scale of `Clock.now`. */
  readonly patienceEndsAt: number;
  /** False: a retry is made only if the target has certainly not processed the attempt. */
  readonly idempotent: boolean;
  /** Why this work must not be retried. Undefined: it may be retried. */
  readonly retryVeto: StopReason | undefined;
}

/** The current state at the time of the decision. */
export interface Facts {
  readonly now: number;
  /** A random number in [0, 1). */
  readonly roll: number;
  /** The tokens in the retry budget. A retry costs one token. */
  readonly tokens: number;
  /** How long an attempt at this target usually takes, in ms; 0 if that is unknown. */
  readonly expectedAttemptMs: number;
  /**
   * When the breaker admits the next attempt; usually `now`. Infinity: the work ends instead of waiting for
   * the breaker.
   */
  readonly admitsAt: number;
}

/**
 * The minimum base of the backoff after a throttled attempt, in ms. An overloaded target needs longer pauses
 * than a target that fails for another reason.
 */
const throttledBaseMs = 1000;

/** The most jitter, in ms, that is added to a wait that a server asked for. */
const hintSpreadMaxMs = 60_000;

export const done: Verdict = { kind: 'done' };

/**
 * Decides what to do after an attempt has ended. The function is pure: it changes nothing and reads no clock.
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
  // If a server asks for a wait, jitter is added to it. Jitter takes at most half of the time left after the
  // wait, so that the next attempt still has time.
  const jitterMs = facts.roll * Math.max(0, Math.min(hintMs, hintSpreadMaxMs, (leftMs - hintMs) / 2));
  const delayMs = Math.max(hintMs + jitterMs, asDelayMs(backoffMs), facts.admitsAt - facts.now);
  if (facts.admitsAt === Infinity) return stop('breaker_open');
  if (delayMs >= leftMs) return stop('patience_too_short', delayMs, leftMs);
  if (facts.tokens < 1) return stop('budget_exhausted');

  return { kind: 'retry', at: facts.now + delayMs, delayMs, because: judged.class, costs: 1 };
}

function stop(because: StopReason, waitMs?: number, leftMs?: number): Verdict {
  return { kind: 'give_up', because, waitMs, leftMs };
}
