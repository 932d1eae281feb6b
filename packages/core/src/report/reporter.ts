import type { Judgement } from '../decide/outcome.ts';
import type { StopReason, Verdict } from '../decide/verdict.ts';
import type { BreakerCause, BreakerState } from '../machines/breaker.ts';
import type { Attempt, GuardedAttempt } from '../run/attempt.ts';
import type { Work } from '../run/work.ts';

/** Receives the events of runs. The part `notices` implements it and passes the events to listeners. */
export interface Reporter {
  /** Returns false while there are no listeners. */
  isHeard(): boolean;
  /** Calls an operation inside the `around` functions of the listeners. */
  enter<T>(work: Work, attempt: Attempt, call: () => T): T;
  started(work: Work, now: number): void;
  attempt(work: Work, attempt: Attempt, now: number, judged: Judgement, verdict: Verdict): void;
  ended(work: Work, now: number): void;
  refused(work: Work, now: number, target: string | undefined, because: StopReason): void;
  hedged(work: Work, attempt: GuardedAttempt, now: number): void;
  /** A fallback or the cache returned the result, instead of the operation. */
  served(target: string | undefined, now: number, by: 'fallback' | 'fresh' | 'stale'): void;
  zombie(attempt: GuardedAttempt, now: number): void;
  breaker(
    target: string | undefined,
    now: number,
    from: BreakerState,
    to: BreakerState,
    because: BreakerCause,
  ): void;
}
