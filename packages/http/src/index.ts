import { type ConnectionOptions, senderOf } from './connections.ts';
import { type FetchOptions as AnyFetchOptions, fetchOver, type HoldfastFetch } from './fetch.ts';

export type { Announce } from './announcement.ts';
export type { CallOptions, Fetch, FetchInput, HoldfastFetch, HoldfastRequestInit, Runner } from './fetch.ts';
export type { Idempotency, Keyed } from './idempotency-key.ts';
export { type InterceptorOptions, retryInterceptor } from './interceptor.ts';
export type { Answer, JudgementOptions } from './judgement.ts';

export interface FetchOptions extends AnyFetchOptions, ConnectionOptions {}

/** Makes a `fetch` that retries safely. */
export function createFetch(options: FetchOptions = {}): HoldfastFetch {
  return fetchOver(options, senderOf(options.fetch, options), undefined);
}
