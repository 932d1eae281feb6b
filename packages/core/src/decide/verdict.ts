import type { OutcomeClass } from './outcome.ts';

/** Why work ended without success: a closed list, the same in code, stories, metrics and the console. */
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
  'cancelled',
  'kill_switch',
  'observed',
] as const;

export type StopReason = (typeof stopReasons)[number];

/** What to do after an attempt, and why. */
export type Verdict =
  | { readonly kind: 'done' }
  /** Another attempt of the same work is still in flight and may succeed. */
  | { readonly kind: 'race' }
  | {
      readonly kind: 'retry';
      /** When, on the scale of `Clock.now`. */
      readonly at: number;
      readonly delayMs: number;
      readonly because: OutcomeClass;
      /** Tokens the caller takes from its budget in the same tick: deciding itself changes nothing. */
      readonly costs: number;
    }
  | { readonly kind: 'give_up'; readonly because: StopReason };
