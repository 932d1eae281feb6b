import type { Random } from 'holdfast';
import { type Retry, writeResponse } from 'holdfast/wire';
import type { PlainResponse, ResponseHeaders } from './response.ts';

const registered = 'https://iana.org/assignments/http-problem-types#';
const own = 'urn:holdfast:problem:';

const problems = {
  'quota-exceeded': [429, 'safe', 'The quota is used up.'],
  'temporary-reduced-capacity': [503, 'safe', 'The server has no capacity for this request now.'],
  'patience-spent': [504, 'safe', 'The patience of the caller is spent.'],
  'too-slow': [504, 'unknown', 'The response took longer than the patience of the caller.'],
  'key-missing': [400, 'never', 'This request needs an Idempotency-Key.'],
  'key-invalid': [400, 'never', 'The Idempotency-Key must be one string of 1 to 255 visible characters.'],
  'key-reused': [422, 'never', 'This Idempotency-Key was used for another request.'],
  'in-progress': [409, 'safe', 'A request with this Idempotency-Key is being processed.'],
  'outcome-unknown': [
    409,
    'never',
    'A request with this Idempotency-Key was begun, and its outcome is unknown.',
  ],
  'response-not-stored': [409, 'never', 'This request was processed, and its response was not kept.'],
  'too-many-keys': [429, 'safe', 'There are too many live keys of this caller.'],
  'scope-unknown': [403, 'never', 'The scope of this Idempotency-Key is unknown.'],
  'content-too-large': [413, 'never', 'A request with an Idempotency-Key may not be this long.'],
  'store-unavailable': [503, 'safe', 'The store of Idempotency-Keys is unavailable.'],
} as const satisfies Record<string, readonly [status: number, retry: Retry, title: string]>;

/** The names of the error responses. Each has its own status and title. */
export type ProblemName = keyof typeof problems;

const registeredNames: readonly string[] = ['quota-exceeded', 'temporary-reduced-capacity'];

/**
 * Creates an error response in the format of RFC 9457 (problem details). It contains no stack, host or key.
 */
export function problem(
  name: ProblemName,
  headers: ResponseHeaders = {},
  members: Readonly<Record<string, unknown>> = {},
): PlainResponse {
  const [status, retry, title] = problems[name];
  const type = (registeredNames.includes(name) ? registered : own) + name;
  return {
    status,
    headers: {
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      holdfast: writeResponse({ retry })!,
      ...headers,
    },
    body: JSON.stringify({ type, title, status, ...members }),
  };
}

/**
 * Returns the value of `Retry-After` in seconds: `waitMs`, at most `capMs`, plus up to 50 %. The random part
 * keeps clients from retrying together.
 */
export function retryAfterHeader(waitMs: number, random: Random, capMs = 3_600_000): string {
  const seconds = Math.max(1, Math.min(waitMs, capMs) / 1000);
  return String(Math.ceil(seconds * (1 + random() / 2)));
}

/** Created only once, because a refusal must be cheap. */
const capacityProblems: readonly PlainResponse[] = ['1', '2', '3'].map((seconds) =>
  problem('temporary-reduced-capacity', { 'retry-after': seconds }),
);

/** Returns a 503 with a random `Retry-After` of 1 to 3 seconds. */
export function noCapacity(random: Random): PlainResponse {
  return capacityProblems[Math.floor(random() * capacityProblems.length)]!;
}

/** A placeholder that reaches no client. nginx logs the status 499 for a client that disconnected. */
export const clientClosedRequest: PlainResponse = { status: 499, headers: {}, body: null };
