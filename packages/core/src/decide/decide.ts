import { asDelayMs, type Delay } from './backoff.ts';
import type { Judgement } from './outcome.ts';
import type { StopReason, Verdict } from './verdict.ts';

/** What a policy says about trying again: the immutable half of the question. */
export interface Rules {
  readonly attempts: number;
  readonly delay: Delay;
  /** The longest server hint worth waiting for; a longer one ends the work. 0: hints are not followed. */
  readonly hintCapMs: number;
}

/** What has happened to this piece of work so far. */
export interface History {
  /** Attempts made, the one just judged included. */
  readonly attempt: number;
  readonly previousDelayMs: number;
  readonly patienceEndsAt: number;
  /** False: only what was provably not processed may be sent again. */
  readonly idempotent: boolean;
  /** What forbids any repetition of this work, if something does. */
  readonly retryVeto: StopReason | undefined;
}

/** What is true at this moment: the half of the question that changes. */
export interface Facts {
  readonly now: number;
  /** A roll of the dice in [0, 1). */
  readonly roll: number;
  /** Tokens in the retry budget. */
  readonly tokens: number;
  /** How long an attempt usually takes; 0 while unknown. */
  readonly expectedAttemptMs: number;
  /** When the next attempt would be admitted: `now` unless every breaker in question is open; Infinity: do not wait. */
  readonly admitsAt: number;
}

/** A throttled target wants more room than a failing one. */
const throttledBaseMs = 1000;

/** Chance adds at most this much to a server's hint. */
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
  // A server's hint is a floor: chance may add up to as much again, never move it earlier. It adds at most half of what
  // patience leaves, so that only the hint itself can be too long and the attempt after it has time.
  const chanceMs = facts.roll * Math.max(0, Math.min(hintMs, hintSpreadMaxMs, (leftMs - hintMs) / 2));
  const delayMs = Math.max(hintMs + chanceMs, asDelayMs(backoffMs), facts.admitsAt - facts.now);
  if (facts.admitsAt === Infinity) return stop('breaker_open');
  if (delayMs >= leftMs) return stop('patience_too_short');
  if (facts.tokens < 1) return stop('budget_exhausted');

  return { kind: 'retry', at: facts.now + delayMs, delayMs, because: judged.class, costs: 1 };
}

function stop(because: StopReason): Verdict {
  return { kind: 'give_up', because };
}
