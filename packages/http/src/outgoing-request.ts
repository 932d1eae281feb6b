import type { AmbientContext, Plan } from 'holdfast';
import type { GuardedAttempt } from 'holdfast/machines';
import type { Dispatcher } from 'undici';
import { madeBy } from './body.ts';
import { type HoldfastHeader, holdfastHeaderOf, writeHoldfastHeader } from './holdfast-header.ts';
import { originOf } from './origin.ts';
import { headerIn, isPairs, type OutgoingHeaders, pairsOf, withHeaders } from './outgoing-headers.ts';
import { type RequestTraits, requestTraits } from './request-traits.ts';

type Request = Dispatcher.DispatchOptions;

/**
 * Returns the request with headers that can be read for every attempt. Headers that are an iterator could be
 * read only once, so they are copied.
 */
export function withReusableHeaders(request: Request): Request {
  const pairs = pairsOf(request.headers as OutgoingHeaders);
  return pairs ? { ...request, headers: pairs.flat() } : request;
}

export function callerKeyOf({ headers }: Request): string | undefined {
  return headerIn(headers as OutgoingHeaders, 'idempotency-key');
}

/**
 * Returns the properties that decide whether the request may be retried. An Idempotency-Key in the caller's
 * headers is used instead of `key`.
 */
export function traitsOf(request: Request, key: string | undefined): RequestTraits {
  return requestTraits(request.method, request.body, callerKeyOf(request) ?? key);
}

/** Returns the `Holdfast` header to send; undefined if the caller has already set this header. */
export function headerFor(
  request: Request,
  plan: Plan,
  key: string | undefined,
  ambient: AmbientContext | undefined,
): HoldfastHeader | undefined {
  if (headerIn(request.headers as OutgoingHeaders, 'holdfast') !== undefined) return undefined;
  const { isIdempotent, isReplayable } = traitsOf(request, key);
  return holdfastHeaderOf(plan, isIdempotent && isReplayable, ambient, undefined);
}

/**
 * Returns the request for one attempt. If no header is added and the body is not a function, the result is
 * the caller's own object.
 */
export function attemptRequest(
  request: Request,
  key: string | undefined,
  header: HoldfastHeader | undefined,
  { attempt, patienceEndsAt, startedAt }: GuardedAttempt,
): Request {
  const hasBodyFactory = typeof request.body === 'function';
  if (key === undefined && !header && !hasBodyFactory) return request;
  const more: Record<string, string> = {};
  if (key !== undefined) more['idempotency-key'] = key;
  if (header) more.holdfast = writeHoldfastHeader(header, attempt, patienceEndsAt - startedAt);
  const headers = withHeaders(request.headers as OutgoingHeaders, more);
  // undici does not accept a list of name–value pairs, only a flat list.
  const made = { ...request, headers: isPairs(headers) ? headers.flat() : headers };
  if (hasBodyFactory) made.body = madeBy(request.body as unknown as () => Request['body']) ?? null;
  return made as Request;
}

export function originNameOf(origin: string | URL | undefined): string {
  if (typeof origin === 'string') return originOf(origin) ?? origin;
  return origin?.origin ?? '';
}
