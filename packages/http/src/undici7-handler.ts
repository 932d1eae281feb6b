import './save-global-dispatcher.ts';
import { type Dispatcher, Dispatcher1Wrapper } from 'undici';

/** Whether it is of a kind that came before undici 8: the `fetch` of Node has such. */
export function isOlder(handler: Dispatcher.DispatchHandler): boolean {
  return typeof handler.onRequestStart !== 'function';
}

/** As undici 8 calls handlers; one that it can call is left as it is. */
export const { wrapHandler } = Dispatcher1Wrapper as unknown as {
  wrapHandler(handler: object): Dispatcher.DispatchHandler;
};

/** The older ones know no other. */
export function overHttp1(request: Dispatcher.DispatchOptions): Dispatcher.DispatchOptions {
  return { ...request, allowH2: false } as Dispatcher.DispatchOptions;
}
