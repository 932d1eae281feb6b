import './save-global-dispatcher.ts';
import { type Dispatcher, Dispatcher1Wrapper } from 'undici';

/** Whether the handler has the old interface, of undici 7 and earlier. The built-in `fetch` of Node uses it. */
export function isUndici7Handler(handler: Dispatcher.DispatchHandler): boolean {
  return typeof handler.onRequestStart !== 'function';
}

/** Adapts a handler to the interface of undici 8. A handler that already has this interface is returned unchanged. */
export const { wrapHandler } = Dispatcher1Wrapper as unknown as {
  wrapHandler(handler: object): Dispatcher.DispatchHandler;
};

/** Returns the request without HTTP/2, which handlers of undici 7 do not support. */
export function overHttp1(request: Dispatcher.DispatchOptions): Dispatcher.DispatchOptions {
  return { ...request, allowH2: false } as Dispatcher.DispatchOptions;
}
