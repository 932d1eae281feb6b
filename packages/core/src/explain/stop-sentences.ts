import type { StopReason } from '../decide/verdict.ts';

/** Why work ended, in words: one sentence for each reason. */
export const stopSentences: Readonly<Record<StopReason, string>> = {
  not_retryable: 'the failure is permanent: another attempt would fail in the same way',
  not_idempotent: 'the operation must not run twice, and this attempt may have been processed',
  not_replayable: 'the body of the request could be read only once',
  not_owner: 'another layer is responsible for retries of this work',
  server_said_stop: 'the server forbade another attempt, or asked for a longer wait than the policy allows',
  attempts_exhausted: 'all attempts were used up',
  patience_too_short: 'patience would have ended before the next attempt',
  budget_exhausted: 'too few calls have succeeded lately to pay for another attempt',
  breaker_open: 'the target has been failing and is not called for now',
  bulkhead_full: 'too many calls were in flight at the target, and its queue was full',
  rate_limited: 'the rate limit for the target was reached',
  throttled: 'the target has been refusing so many calls that some are not sent',
  shed: 'the server was overloaded, and calls of a higher priority went first',
  committed: 'an effect was done already, so that a repetition would do it twice',
  poison: 'the event cannot be processed by any consumer',
  crashed: 'the process crashed too often while it worked on this',
  cancelled: 'the caller cancelled it',
  kill_switch: 'retries are switched off',
  observed: 'the policy only observes: the operation is called once',
};
