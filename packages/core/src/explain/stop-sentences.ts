import type { StopReason } from '../decide/verdict.ts';

/** Why work ended, in words: one sentence for each reason. */
export const stopSentences: Readonly<Record<StopReason, string>> = {
  not_retryable: 'the failure is not one that passes: trying again would give the same',
  not_idempotent: 'the operation must not run twice, and this attempt may have been processed',
  not_replayable: 'what was to be sent could be read only once',
  not_owner: 'another layer is responsible for retries of this work',
  server_said_stop: 'the server said not to come back, or not for longer than is worth waiting',
  attempts_exhausted: 'all attempts were used up',
  patience_too_short: 'the next wait would have ended after the customer gives up',
  budget_exhausted: 'too few calls have succeeded lately to pay for another attempt',
  breaker_open: 'the target has been failing and is not called for now',
  bulkhead_full: 'too many calls were in flight at the target, and its queue was full',
  rate_limited: 'the target would have had more calls than its rate allows',
  throttled: 'the target has been refusing so much that some calls are not sent',
  shed: 'there was too much to do, and something more important went first',
  committed: 'an effect was done already, so that a repetition would do it twice',
  poison: 'the event cannot be processed, whoever tries',
  crashed: 'the process died too often while it was at work on this',
  cancelled: 'the caller left',
  kill_switch: 'retries are switched off',
  observed: 'the policy only observes: the operation is called once',
};
