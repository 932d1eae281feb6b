import type { AmbientContext, Plan } from 'holdfast';
import type { GuardedAttempt } from 'holdfast/machines';
import type { Dispatcher } from 'undici';
import { madeBy } from './body.ts';
import { type HoldfastHeader, holdfastHeaderOf, writeHoldfastHeader } from './holdfast-header.ts';
import { originOf } from './origin.ts';
import { headerIn, isPairs, type OutgoingHeaders, pairsOf, withHeaders } from './outgoing-headers.ts';
import { type RequestTraits, requestTraits } from './request-traits.ts';

type Request = Dispatcher.DispatchOptions;

/** Returns the request with headers that every attempt can read. An iterator could be read only once. */
export function withReusableHeaders(request: Request): Request {
  const pairs = pairsOf(request.headers as OutgoingHeaders);
  return pairs ? { ...request, headers: pairs.flat() } : request;
}

export function callerKeyOf({ headers }: Request): string | undefined {
  return headerIn(headers as OutgoingHeaders, 'idempotency-key');
}

/** Returns the properties that decide about a retry. A key in the caller's headers replaces `key`. */
export function traitsOf(request: Request, key: string | undefined): RequestTraits {
  return requestTraits(request.method, request.body, callerKeyOf(request) ?? key);
}

/** Returns the `Holdfast` header to send; undefined if the caller has set one. */
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

/** Returns the request of one attempt. It is the caller's own object if nothing is added. */
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
  // undici accepts only a flat list, not pairs of name and value.
  const made = { ...request, headers: isPairs(headers) ? headers.flat() : headers };
  if (hasBodyFactory) made.body = madeBy(request.body as unknown as () => Request['body']) ?? null;
  return made as Request;
}

export function originNameOf(origin: string | URL | undefined): string {
  if (typeof origin === 'string') return originOf(origin) ?? origin;
  return origin?.origin ?? '';
}
