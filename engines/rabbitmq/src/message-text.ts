import type { Headers } from '@holdfast/contracts';
import type { Message } from '@holdfast/contracts/carrier';
import type { MessageProperties, Options } from 'amqplib';
import { shortened } from './names.ts';

/** The client refuses header tables above 64 KiB, and the server adds some of its own. */
const headersBytesMax = 60_000;
/** AMQP's limit of header names and of the property `message-id`. */
const shortBytesMax = 255;

/** Headers under names that the server does not take, or understands otherwise, are in this one, as JSON. */
const oddHeaders = 'holdfast-headers';

/** The server routes by these, or writes them itself. */
const serverHeaders = new Set([
  ...['CC', 'BCC', 'x-death', 'x-delivery-count', 'x-acquired-count', 'x-stream-offset'],
  ...['exchange', 'queue', 'reason'].flatMap((what) => [`x-first-death-${what}`, `x-last-death-${what}`]),
]);

/** The properties of a message that is sent. The headers are the truth; other programs may read the properties. */
export function toProperties({ headers, dedupId }: Message, nowMs: number): Options.Publish {
  return {
    persistent: true,
    mandatory: true,
    messageId: shortened(headers['event-id'] ?? dedupId, shortBytesMax),
    timestamp: Math.floor(nowMs / 1000),
    headers: encodeHeaders(headers),
  };
}

export function encodeHeaders(given: Headers): Record<string, string> {
  const headers: Record<string, string> = {};
  const odd: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(fitting(given))) {
    const isOdd =
      serverHeaders.has(name) ||
      name === oddHeaders ||
      name === '__proto__' ||
      // Clients write objects with a type under this name.
      name === '!' ||
      name === '' ||
      Buffer.byteLength(name) > shortBytesMax;
    (isOdd ? odd : headers)[name.toWellFormed()] = value.toWellFormed();
  }
  if (Object.keys(odd).length > 0) headers[oddHeaders] = JSON.stringify(odd);
  return headers;
}

/**
 * Reads the headers of any program: numbers and booleans as text, tables as JSON, bytes as base64. Without our own headers,
 * the properties `type` and `correlation-id` count.
 */
export function decodeHeaders(properties: Partial<MessageProperties>): Record<string, string> {
  const headers: Record<string, string> = {};
  const put = (name: string, value: string) =>
    Object.defineProperty(headers, name, { value, enumerable: true, configurable: true, writable: true });
  for (const [name, value] of Object.entries(properties.headers ?? {}))
    if (!serverHeaders.has(name) && name !== oddHeaders) put(name, textOf(value));
  for (const [name, value] of Object.entries(oddOf(properties.headers?.[oddHeaders])))
    put(name, textOf(value));
  const { type, correlationId, contentType, contentEncoding } = properties;
  for (const [name, value] of Object.entries({
    'event-type': type,
    'correlation-id': correlationId,
    'content-type': contentType,
    'content-encoding': contentEncoding,
  }))
    if (typeof value === 'string' && value !== '' && headers[name] === undefined) put(name, value);
  return headers;
}

function oddOf(value: unknown): object {
  try {
    const odd = JSON.parse(String(value ?? '{}'));
    return typeof odd === 'object' && odd !== null ? odd : {};
  } catch {
    return {};
  }
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return '';
  if (Buffer.isBuffer(value)) return value.toString('base64');
  if (typeof value !== 'object') return String(value);
  // The client tells the types of AMQP that JavaScript has not: `{ '!': 'timestamp', value: 17 }`.
  if ('!' in value && 'value' in value) return textOf(value.value);
  return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? String(each) : each));
}

/** Ways to make headers smaller, the least painful first. */
const cuts: readonly ((note: { error: ErrorText; story: unknown[] }) => void)[] = [
  ({ error }) => delete error.stack,
  ({ error }) => delete error.causes,
  ({ story }) => story.splice(0, Math.max(0, story.length - 5)),
  ({ story }) => story.splice(0),
];

interface ErrorText {
  stack?: unknown;
  causes?: unknown;
}

/** Headers within the limit. If the last error and the story are too long, the stack is dropped first. */
function fitting(headers: Headers): Headers {
  if (sizeOf(headers) <= headersBytesMax) return headers;
  const { 'last-error': error, 'retry-story': story } = headers;
  const note = {
    error: JSON.parse(error ?? '{}') as ErrorText,
    story: JSON.parse(story ?? '[]') as unknown[],
  };
  let cut = headers;
  for (const shorten of cuts) {
    shorten(note);
    cut = {
      ...headers,
      ...(error !== undefined && { 'last-error': JSON.stringify(note.error) }),
      ...(story !== undefined && { 'retry-story': JSON.stringify(note.story) }),
    };
    if (sizeOf(cut) <= headersBytesMax) break;
  }
  return cut;
}

function sizeOf(headers: Headers): number {
  let bytes = 0;
  for (const name in headers) bytes += 3 * (name.length + headers[name]!.length) + 8;
  // A character has at most 3 bytes, so short headers need no exact count.
  if (bytes <= headersBytesMax) return bytes;
  return Object.entries(headers).reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value) + 8,
    0,
  );
}
