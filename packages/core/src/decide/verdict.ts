import type { OutcomeClass } from './outcome.ts';

/** The reasons why work can end without success. The list is complete, so code and metrics can rely on it. */
export const stopReasons = [
  'not_retryable',
  'not_idempotent',
  'not_replayable',
  'not_owner',
  'server_said_stop',
  'attempts_exhausted',
  'patience_too_short',
  'budget_exhausted',
  'breaker_open',
  'bulkhead_full',
  'rate_limited',
  'throttled',
  'shed',
  'committed',
  'poison',
  'crashed',
  'program_changed',
  'outcome_unknown',
  'cancelled',
  'kill_switch',
  'observed',
] as const;

/** Why work ended without success. docs/stop-reasons.md says what to do about each reason. */
export type StopReason = (typeof stopReasons)[number];

/** The decision after an attempt, and the reason for it. */
export type Verdict =
  | { readonly kind: 'done' }
  /** No decision yet: another attempt of the same work is still in flight and may succeed. */
  | { readonly kind: 'race' }
  | {
      readonly kind: 'retry';
      /** When to send the next attempt, on the scale of `Clock.now`. */
      readonly at: number;
      readonly delayMs: number;
      readonly because: OutcomeClass;
      /** The tokens that the retry costs. The caller of `decide` takes them from the retry budget. */
      readonly costs: number;
    }
  | {
      readonly kind: 'give_up';
      readonly because: StopReason;
      /** Only if the wait for the next attempt would have been too long: the ms of that wait. */
      readonly waitMs?: number | undefined;
      /** Beside `waitMs`: the ms that were left for it. The usual duration of an attempt is subtracted. */
      readonly leftMs?: number | undefined;
    };
