import type { ServerResponse } from 'node:http';

/** Who is told when a response was sent, or the connection of its client is closed. */
export type CloseListener = { closed(): void } | ((response: ServerResponse) => void);

const listenerKey: unique symbol = Symbol('holdfast.gateway.closeListener');

interface Carrier {
  [listenerKey]?: CloseListener;
}

/** One function for all responses: a closure for each would cost more than the event itself. */
function onClose(this: ServerResponse): void {
  const listener = (this as Carrier)[listenerKey]!;
  if (typeof listener === 'function') listener(this);
  else listener.closed();
}

/** Sets who is told when a response closes, instead of the one before. */
export function setCloseListener(response: ServerResponse, listener: CloseListener): void {
  if ((response as Carrier)[listenerKey] === undefined) response.on('close', onClose);
  (response as Carrier)[listenerKey] = listener;
}
