import type { PolicySpec } from 'holdfast';
import { type FetchOptions, fetchFields, fetchOver, type HoldfastFetch, readFetchOptions } from './fetch.ts';
import { signalSender } from './signal-sender.ts';

export {
  type CallOptions,
  FetchClosedError,
  type FetchOptions,
  type HoldfastFetch,
  type HoldfastRequestInit,
  type Runner,
} from './fetch.ts';
export type { Announce } from './holdfast-header.ts';
export type { Idempotency, KeyedRequest } from './idempotency-key.ts';
export type { Fetch, FetchInput } from './sender.ts';

/**
 * Creates a `fetch` function that retries failed requests if a retry is safe. It sends them with the
 * browser's own `fetch`.
 */
export function createFetch<Spec extends object = PolicySpec>(
  options: FetchOptions<Spec> = {},
): HoldfastFetch<Spec> {
  const settings = readFetchOptions(fetchFields, options);
  const send = settings.fetch ?? ((input, init) => globalThis.fetch(input, init));
  return fetchOver(settings, signalSender(send), globalThis.location?.origin) as HoldfastFetch<Spec>;
}
