import type { PolicySpec } from 'holdfast';
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
import type { Fetch } from './sender.ts';

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

/**
 * The `fetch` of undici, whose types differ from those of the global `fetch`. The second signature changes
 * nothing: because of it, the parameters of an inline function get their types from `Fetch` alone.
 */
export interface UndiciFetch {
  (...args: Parameters<typeof undiciFetch>): ReturnType<typeof undiciFetch>;
  <_>(...args: Parameters<typeof undiciFetch>): ReturnType<typeof undiciFetch>;
}

/** The options of `createFetch` on Node. They include connection options, which browsers do not have. */
export interface FetchOptions<Spec extends object = PolicySpec>
  extends AnyFetchOptions<Spec>,
    ConnectionOptions {
  /** The `fetch` that sends the attempts: of the global, or of undici. Default: the global `fetch`. */
  readonly fetch?: Fetch | UndiciFetch | undefined;
}

/** Creates a `fetch` function that retries failed requests if a retry is safe. */
export function createFetch<Spec extends object = PolicySpec>(
  options: FetchOptions<Spec> = {},
): HoldfastFetch<Spec> {
  // The responses of undici differ from those of the global `fetch` only in their types.
  const given = options as PlainFetchOptions & ConnectionOptions;
  const settings = readFetchOptions({ ...fetchFields, ...connectionFields }, given);
  return fetchOver(settings, senderOf(settings.fetch, settings), undefined) as HoldfastFetch<Spec>;
}
