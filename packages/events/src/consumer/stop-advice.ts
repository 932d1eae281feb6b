/**
 * Says why an event with this stop reason was not tried again, and what to do. `message` is the message of the
 * error, which may name a better remedy. `undefined`: the stop reason needs no explanation.
 */
export function stopAdvice(stop: string, message = ''): string | undefined {
  const [, topic] = undeclared.exec(message) ?? [];
  if (topic !== undefined) return declareFirst(topic);
  return stop === 'not_retryable' ? notRetryable : undefined;
}

/** The message of the `TopicError` that engines throw for a topic that does not exist. */
const undeclared = /\btopic ("(?:[^"\\]|\\.)*") was never declared/;

function declareFirst(topic: string): string {
  return `declare this topic once, before the first event is published to it: \`await engine.broker.declare(${topic})\`; then replay the event`;
}

const notRetryable =
  'nothing says that this error is temporary, so it was not tried again; if it is temporary, throw ' +
  '`transient(error)` in the handler, or let `policy.retryOn` recognize it';
