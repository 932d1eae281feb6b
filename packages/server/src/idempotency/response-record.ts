import type { Payload } from '@holdfast/contracts';
import { OptionsError } from 'holdfast';
import type { PlainResponse, ResponseHeaders } from '../response.ts';

/** Only these headers are recorded. Others, such as cookies, were meant for the first client. */
const replayed = [
  'content-type',
  'content-language',
  'content-encoding',
  'location',
  'etag',
  'last-modified',
  'link',
  'vary',
] as const;

const forbidden =
  /^(set-cookie2?|www-authenticate|proxy-authenticate|authorization|connection|transfer-encoding|te|trailer|upgrade|keep-alive|date|server-timing|ratelimit.*|traceparent)$/;

export function isReplayable(name: string): boolean {
  return !forbidden.test(name);
}

/** Throws if a handler made something else than a response, because a record of it could not be read again. */
export function assertResponse(made: unknown): asserts made is PlainResponse {
  const { status, headers, body } = (made ?? {}) as Partial<Record<keyof PlainResponse, unknown>>;
  const isStatus = Number.isInteger(status) && (status as number) >= 200 && (status as number) <= 599;
  const isBody = body === null || typeof body === 'string' || body instanceof Uint8Array;
  if (isStatus && isBody && areHeaders(headers)) return;
  throw new OptionsError(
    'the response of commit',
    made,
    '{ status, headers, body }: a status from 200 to 599, a plain object whose values are texts or lists of texts, and a text, bytes or null',
  );
}

function areHeaders(headers: unknown): boolean {
  // `Headers` and maps have no fields: their headers would be lost.
  if (typeof headers !== 'object' || headers === null || Symbol.iterator in headers) return false;
  const isText = (value: unknown) => typeof value === 'string';
  return Object.values(headers).every(
    (value) => isText(value) || (Array.isArray(value) && value.every(isText)),
  );
}

interface RecordHead {
  readonly status: number;
  readonly headers: ResponseHeaders;
}

const lineFeed = 10;

/** Returns the stored form of a response: one line of JSON with status and headers, then the body. */
export function encodeResponse(
  { status, headers, body }: PlainResponse,
  alsoReplayed: readonly string[] = [],
): Payload {
  const kept: Record<string, string | string[]> = {};
  for (const name of replayed) if (headers[name] !== undefined) kept[name] = headers[name];
  for (const name of alsoReplayed) if (headers[name] !== undefined) kept[name] = headers[name];
  const head = `${JSON.stringify({ status, headers: kept } satisfies RecordHead)}\n`;
  if (body === null || typeof body === 'string') return head + (body ?? '');
  return Buffer.concat([Buffer.from(head), body]);
}

export function decodeResponse(record: Payload): PlainResponse {
  const end = typeof record === 'string' ? record.indexOf('\n') : record.indexOf(lineFeed);
  const line =
    typeof record === 'string' ? record.slice(0, end) : Buffer.from(record.subarray(0, end)).toString();
  const { status, headers } = JSON.parse(line) as RecordHead;
  const body = typeof record === 'string' ? record.slice(end + 1) : record.subarray(end + 1);
  return { status, headers: { ...headers, 'idempotent-replayed': 'true' }, body };
}
