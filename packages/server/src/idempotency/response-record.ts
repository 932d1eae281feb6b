import type { Payload } from '@holdfast/contracts';
import type { Answer, AnswerHeaders } from '../response.ts';

/** What of an answer is replayed. Everything else (cookies, authentication, dates, limits) was for the first caller alone. */
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

/** Whoever asks for them to be replayed: they are never. */
const forbidden =
  /^(set-cookie2?|www-authenticate|proxy-authenticate|authorization|connection|transfer-encoding|te|trailer|upgrade|keep-alive|date|server-timing|ratelimit.*|traceparent)$/;

export function isReplayable(name: string): boolean {
  return !forbidden.test(name);
}

interface Head {
  readonly status: number;
  readonly headers: AnswerHeaders;
}

const lineFeed = 10;

/** One line about the answer, then its body as it was. */
export function encodeAnswer(
  { status, headers, body }: Answer,
  alsoReplayed: readonly string[] = [],
): Payload {
  const kept: Record<string, string | readonly string[]> = {};
  for (const name of replayed) if (headers[name] !== undefined) kept[name] = headers[name];
  for (const name of alsoReplayed) if (headers[name] !== undefined) kept[name] = headers[name];
  const head = `${JSON.stringify({ status, headers: kept } satisfies Head)}\n`;
  if (body === null || typeof body === 'string') return head + (body ?? '');
  return Buffer.concat([Buffer.from(head), body]);
}

export function decodeAnswer(record: Payload): Answer {
  const end = typeof record === 'string' ? record.indexOf('\n') : record.indexOf(lineFeed);
  const line =
    typeof record === 'string' ? record.slice(0, end) : Buffer.from(record.subarray(0, end)).toString();
  const { status, headers } = JSON.parse(line) as Head;
  const body = typeof record === 'string' ? record.slice(end + 1) : record.subarray(end + 1);
  return { status, headers: { ...headers, 'idempotent-replayed': 'true' }, body };
}
