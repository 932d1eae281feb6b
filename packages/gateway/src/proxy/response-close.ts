import type { ServerResponse } from 'node:http';

/** Called when the whole response is sent, or the client has disconnected. */
export type CloseListener = { closed(): void } | ((response: ServerResponse) => void);

const listenerKey: unique symbol = Symbol('holdfast.gateway.closeListener');

interface Carrier {
  [listenerKey]?: CloseListener;
}

/** All responses share this function, because a closure for each would be slower. */
function onClose(this: ServerResponse): void {
  const listener = (this as Carrier)[listenerKey]!;
  if (typeof listener === 'function') listener(this);
  else listener.closed();
}

/** Replaces the listener for the `close` event of a response. */
export function setCloseListener(response: ServerResponse, listener: CloseListener): void {
  if ((response as Carrier)[listenerKey] === undefined) response.on('close', onClose);
  (response as Carrier)[listenerKey] = listener;
}
