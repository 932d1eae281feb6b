import type { AmbientContext, Plan } from 'holdfast';
import type { GuardedAttempt } from 'holdfast/machines';
import type { Dispatcher } from 'undici';
import { isReplayable, madeBy } from './body.ts';
import { originOf } from './fetch.ts';
import { announce, announcementOf, type HoldfastHeader } from './holdfast-header.ts';
import { headerIn, isPairs, type OutgoingHeaders, pairsOf, withHeaders } from './outgoing-headers.ts';
import { isRepeatable } from './repeatable.ts';

type Request = Dispatcher.DispatchOptions;

/** With headers that can be read for each attempt. */
export function lasting(request: Request): Request {
  const pairs = pairsOf(request.headers as OutgoingHeaders);
  return pairs ? { ...request, headers: pairs.flat() } : request;
}

/** The key that the caller gave. */
export function givenKeyOf({ headers }: Request): string | undefined {
  return headerIn(headers as OutgoingHeaders, 'idempotency-key');
}

/** Whether its body can be sent more than once; one that is made by a function can. */
export function canSendAgain({ body }: Request): boolean {
  return typeof body === 'function' || isReplayable(body);
}

/** What to announce; nothing where the caller has written the header. */
export function announcedOf(
  request: Request,
  plan: Plan,
  key: string | undefined,
  around: AmbientContext | undefined,
): HoldfastHeader | undefined {
  if (headerIn(request.headers as OutgoingHeaders, 'holdfast') !== undefined) return undefined;
  const mayRepeat = (key || givenKeyOf(request) || isRepeatable(request.method)) && canSendAgain(request);
  return announcementOf(plan, Boolean(mayRepeat), around, undefined);
}

/** The request of one attempt; the very one of the caller where there is nothing to add. */
export function outgoing(
  request: Request,
  key: string | undefined,
  announcement: HoldfastHeader | undefined,
  { attempt, patienceEndsAt, startedAt }: GuardedAttempt,
): Request {
  const isMade = typeof request.body === 'function';
  if (key === undefined && !announcement && !isMade) return request;
  const more: Record<string, string> = {};
  if (key !== undefined) more['idempotency-key'] = key;
  if (announcement) more.holdfast = announce(announcement, attempt, patienceEndsAt - startedAt);
  const headers = withHeaders(request.headers as OutgoingHeaders, more);
  // Pairs are of `fetch`; a list of undici's is flat.
  const made = { ...request, headers: isPairs(headers) ? headers.flat() : headers };
  if (isMade) made.body = madeBy(request.body as unknown as () => Request['body']) ?? null;
  return made as Request;
}

export function originNameOf(origin: string | URL | undefined): string {
  if (typeof origin === 'string') return originOf(origin) ?? origin;
  return origin?.origin ?? '';
}
