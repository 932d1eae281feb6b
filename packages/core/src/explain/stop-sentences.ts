import type { StopReason } from '../decide/verdict.ts';

/** One sentence for each reason why work ended without success. */
export const stopSentences: Readonly<Record<StopReason, string>> = {
  not_retryable: 'the failure is permanent: another attempt would fail in the same way',
  not_idempotent: 'the operation must not run twice, and this attempt may have been processed',
  not_replayable: 'the body of the request could be read only once',
  not_owner: 'another layer is responsible for retries of this work',
  server_said_stop: 'the server forbade another attempt, or asked for a longer wait than the policy allows',
  attempts_exhausted: 'all attempts were used up',
  patience_too_short: 'patience has ended, or would have ended before the next attempt',
  budget_exhausted: 'too few calls have succeeded lately to pay for another attempt',
  breaker_open: 'the breaker is open, so the target is not called for now',
  bulkhead_full: 'too many calls were in flight at the target, and its queue was full',
  rate_limited: 'the rate limit for the target was reached',
  throttled: 'the target has been refusing so many calls that some are not sent',
  shed: 'the server was overloaded, and calls of a higher priority went first',
  committed: 'an effect was done already, so that a repetition would do it twice',
  poison: 'the event cannot be processed by any consumer',
  crashed: 'the process crashed too often while it worked on this',
  program_changed: 'the program asks for other steps than those on record',
  outcome_unknown: 'nobody knows whether the step was done, and it must not be done twice',
  cancelled: 'the caller cancelled it',
  kill_switch: 'retries are switched off',
  observed: 'the policy only observes: the operation is called once',
};

/** What the user can do, for the stop reasons where a short advice helps. */
export const stopRemedies: Partial<Readonly<Record<StopReason, string>>> = {
  not_idempotent:
    'an `Idempotency-Key` makes it safe to repeat (`createFetch({ idempotency: "auto" })`), if the server knows such keys',
  not_replayable: 'give the body as text, bytes, or a function that makes it anew',
  budget_exhausted: 'the option `budget` of the policy sets how many retries the successes pay for',
};
