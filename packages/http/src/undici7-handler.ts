import './save-global-dispatcher.ts';
import { type Dispatcher, Dispatcher1Wrapper } from 'undici';

/** Whether the handler has the interface of undici 7 and before, which the `fetch` of Node uses. */
export function isUndici7Handler(handler: Dispatcher.DispatchHandler): boolean {
  return typeof handler.onRequestStart !== 'function';
}

/** Adapts a handler to undici 8; one that has its interface is returned as it is. */
export const { wrapHandler } = Dispatcher1Wrapper as unknown as {
  wrapHandler(handler: object): Dispatcher.DispatchHandler;
};

/** Handlers of undici 7 cannot handle HTTP/2. */
export function overHttp1(request: Dispatcher.DispatchOptions): Dispatcher.DispatchOptions {
  return { ...request, allowH2: false } as Dispatcher.DispatchOptions;
}
