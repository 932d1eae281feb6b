import { type PlainResponse, retryAfterHeader } from '@holdfast/server';
import { ExpiredError, HoldfastError, type Random, RefusedError } from 'holdfast';
import { type Retry, writeResponse } from 'holdfast/wire';

/** Error responses of the gateway: the status, whether a retry is safe, and the title. */
const refusals = {
  'bad-request': [400, 'never', 'The request is not well-formed.'],
  'no-route': [404, 'never', 'No route leads from here.'],
  'method-not-allowed': [405, 'never', 'No route takes this method here.'],
  'expectation-failed': [417, 'never', 'Only 100-continue can be expected.'],
  'request-timeout': [408, 'safe', 'The body did not come in time.'],
  'content-too-large': [413, 'never', 'The body is longer than this route takes.'],
  'not-sent': [502, 'safe', 'The upstream could not be reached.'],
  'bad-gateway': [502, 'unknown', 'The upstream ended the connection without a whole response.'],
  'upstream-refused': [503, 'safe', 'The upstream gets no requests now.'],
  'upstream-too-slow': [504, 'unknown', 'The upstream did not respond in time.'],
  'patience-spent': [504, 'safe', 'The patience of the caller is spent.'],
  'no-upgrade': [426, 'never', 'This route does not change protocols.'],
  internal: [500, 'unknown', 'The gateway failed.'],
} as const satisfies Record<string, readonly [number, Retry, string]>;

export type RefusalName = keyof typeof refusals;

/** A cache, so that refusing a request costs less than serving it. */
const made = new Map<RefusalName, PlainResponse>();

/**
 * Returns an error response in the problem format (RFC 9457). It hides the upstream and the cause, which only
 * the log has.
 */
export function refusal(name: RefusalName, headers?: Readonly<Record<string, string>>): PlainResponse {
  let response = made.get(name);
  if (!response) {
    const [status, retry, title] = refusals[name];
    response = {
      status,
      headers: {
        'content-type': 'application/problem+json',
        'cache-control': 'no-store',
        holdfast: writeResponse({ retry })!,
      },
      body: JSON.stringify({ type: `urn:holdfast:problem:${name}`, title, status }),
    };
    made.set(name, response);
  }
  return headers ? { ...response, headers: { ...response.headers, ...headers } } : response;
}

/** Returns the response to a request that got none from an upstream. `wasSent`: an attempt was sent. */
export function refusalFor(error: unknown, wasSent: boolean, random: Random): PlainResponse {
  if (error instanceof RefusedError) {
    const { retryAfterMs } = error;
    return refusal('upstream-refused', { 'retry-after': retryAfterHeader(retryAfterMs ?? 1000, random) });
  }
  if (error instanceof ExpiredError) return refusal(wasSent ? 'upstream-too-slow' : 'patience-spent');
  if (error instanceof HoldfastError) return refusal('internal');
  return refusal(wasSent ? 'bad-gateway' : 'not-sent');
}
