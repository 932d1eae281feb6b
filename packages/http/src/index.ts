import type { fetch as undiciFetch } from 'undici';
import { type ConnectionOptions, connectionFields, senderOf } from './connections.ts';
import {
  type AnyFetchOptions,
  fetchFields,
  fetchOver,
  type HoldfastFetch,
  type FetchOptions as PlainFetchOptions,
  readFetchOptions,
} from './fetch.ts';

export type { ClassifyOptions, ResponseHead } from './classify-response.ts';
export {
  type CallOptions,
  FetchClosedError,
  type HoldfastFetch,
  type HoldfastRequestInit,
  type Runner,
} from './fetch.ts';
export type { Announce } from './holdfast-header.ts';
export type { Idempotency, KeyedRequest } from './idempotency-key.ts';
export { type InterceptorOptions, retryInterceptor } from './interceptor.ts';
export type { Fetch, FetchInput } from './sender.ts';

/** The options of `createFetch` on Node. They include connection options, which browsers do not have. */
export interface FetchOptions extends PlainFetchOptions, ConnectionOptions {}

/** Options with the `fetch` of undici. Its types differ from the types of the global `fetch`. */
export interface UndiciFetchOptions extends AnyFetchOptions, ConnectionOptions {
  /** The `fetch` of undici, which sends the attempts. Required. */
  readonly fetch: typeof undiciFetch;
}

/** Creates a `fetch` function that retries failed requests if a retry is safe. */
export function createFetch(options?: FetchOptions): HoldfastFetch;
export function createFetch(options: UndiciFetchOptions): HoldfastFetch;
export function createFetch(given: FetchOptions | UndiciFetchOptions = {}): HoldfastFetch {
  const options = given as FetchOptions;
  const settings = readFetchOptions({ ...fetchFields, ...connectionFields }, options);
  return fetchOver(settings, senderOf(settings.fetch, settings), undefined);
}
