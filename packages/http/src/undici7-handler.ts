import './save-global-dispatcher.ts';
import { type Dispatcher, Dispatcher1Wrapper } from 'undici';

/**
 * Returns true if the handler has the interface of undici 7 or earlier. Node's built-in `fetch` uses this
 * interface.
 */
export function isUndici7Handler(handler: Dispatcher.DispatchHandler): boolean {
  return typeof handler.onRequestStart !== 'function';
}

/** Adapts a handler to the interface of undici 8. Newer handlers are returned unchanged. */
export const { wrapHandler } = Dispatcher1Wrapper as unknown as {
  wrapHandler(handler: object): Dispatcher.DispatchHandler;
};

/** Disables HTTP/2, which handlers of undici 7 do not support. */
export function overHttp1(request: Dispatcher.DispatchOptions): Dispatcher.DispatchOptions {
  return { ...request, allowH2: false } as Dispatcher.DispatchOptions;
}
