/**
 * Says why an event with this stop reason was not tried again, and what to do. `undefined`: the stop reason
 * needs no explanation.
 */
export function stopAdvice(stop: string): string | undefined {
  return stop === 'not_retryable' ? notRetryable : undefined;
}

const notRetryable =
  'nothing says that this error is temporary, so it was not tried again; if it is temporary, throw ' +
  '`transient(error)` in the handler, or let `policy.retryOn` recognize it';
