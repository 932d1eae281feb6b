import type { AmbientContext, Plan } from 'holdfast';
import type { GuardedAttempt } from 'holdfast/machines';
import type { Dispatcher } from 'undici';
import { madeBy } from './body.ts';
import { type HoldfastHeader, holdfastHeaderOf, writeHoldfastHeader } from './holdfast-header.ts';
import { originOf } from './origin.ts';
import { headerIn, isPairs, type OutgoingHeaders, pairsOf, withHeaders } from './outgoing-headers.ts';
import { type RequestTraits, requestTraits } from './request-traits.ts';

type Request = Dispatcher.DispatchOptions;

/** Returns the request with headers that every attempt can read. An iterator of headers could be read only once. */
export function withReusableHeaders(request: Request): Request {
  const pairs = pairsOf(request.headers as OutgoingHeaders);
  return pairs ? { ...request, headers: pairs.flat() } : request;
}

/** Returns the Idempotency-Key that the caller has set in the headers. */
export function callerKeyOf({ headers }: Request): string | undefined {
  return headerIn(headers as OutgoingHeaders, 'idempotency-key');
}

/**
 * Returns the properties that decide whether the request may be sent again. `key` is the Idempotency-Key that this
 * client made; a key in the caller's headers is used instead of it.
 */
export function traitsOf(request: Request, key: string | undefined): RequestTraits {
  return requestTraits(request.method, request.body, callerKeyOf(request) ?? key);
}

/** Returns the `Holdfast` header to send; undefined if the caller has already set one. */
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

/** Returns the request of one attempt. It is the caller's own object if there is nothing to add. */
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
  // undici does not accept pairs of name and value, only a flat list.
  const made = { ...request, headers: isPairs(headers) ? headers.flat() : headers };
  if (hasBodyFactory) made.body = madeBy(request.body as unknown as () => Request['body']) ?? null;
  return made as Request;
}

export function originNameOf(origin: string | URL | undefined): string {
  if (typeof origin === 'string') return originOf(origin) ?? origin;
  return origin?.origin ?? '';
}
