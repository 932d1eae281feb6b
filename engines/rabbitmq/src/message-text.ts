import type { Headers } from '@holdfast/contracts';
import type { Message } from '@holdfast/contracts/carrier';
import type { MessageProperties, Options } from 'amqplib';
import { shortened } from './names.ts';

/**
 * The client refuses headers above 64 KiB in total. This leaves room for the headers that the server adds.
 */
const headersBytesMax = 60_000;
/** The most bytes that AMQP allows for a header name and for the property `message-id`. */
const shortBytesMax = 255;

/**
 * Headers whose names the server refuses or gives a special meaning are stored in this single header, as
 * JSON.
 */
const oddHeaders = 'holdfast-headers';

/**
 * Names of headers that have a special meaning: the server routes messages by them, or writes them itself.
 */
const serverHeaders = new Set([
  ...['CC', 'BCC', 'x-death', 'x-delivery-count', 'x-acquired-count', 'x-stream-offset'],
  ...['exchange', 'queue', 'reason'].flatMap((what) => [`x-first-death-${what}`, `x-last-death-${what}`]),
]);

/**
 * The AMQP properties of a message. Our headers contain everything; the other properties repeat some of it,
 * so that other programs can read it.
 */
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
      // The client library uses the name `!` for the type of a typed value.
      name === '!' ||
      name === '' ||
      Buffer.byteLength(name) > shortBytesMax;
    (isOdd ? odd : headers)[name.toWellFormed()] = value.toWellFormed();
  }
  if (Object.keys(odd).length > 0) headers[oddHeaders] = JSON.stringify(odd);
  return headers;
}

/**
 * Reads the headers of messages from any program. Numbers and booleans become text, tables become JSON, bytes
 * become base64. If one of our headers is missing, the AMQP property with the same meaning is used: `type`
 * for `event-type`.
 */
export function decodeHeaders(properties: Partial<MessageProperties>): Record<string, string> {
  const headers: Record<string, string> = {};
  const given = properties.headers ?? {};
  for (const name in given)
    if (!serverHeaders.has(name) && name !== oddHeaders) put(headers, name, textOf(given[name]));
  if (given[oddHeaders] !== undefined)
    for (const [name, value] of Object.entries(oddOf(given[oddHeaders]))) put(headers, name, textOf(value));
  putProperty(headers, 'event-type', properties.type);
  putProperty(headers, 'correlation-id', properties.correlationId);
  putProperty(headers, 'content-type', properties.contentType);
  putProperty(headers, 'content-encoding', properties.contentEncoding);
  return headers;
}

function put(headers: Record<string, string>, name: string, value: string): void {
  // An assignment to `__proto__` would change the prototype instead of adding a header.
  if (name !== '__proto__') headers[name] = value;
  else Object.defineProperty(headers, name, { value, enumerable: true, configurable: true, writable: true });
}

function putProperty(headers: Record<string, string>, name: string, value: unknown): void {
  if (typeof value === 'string' && value !== '' && headers[name] === undefined) headers[name] = value;
}

function oddOf(value: unknown): object {
  try {
    const odd = JSON.parse(String(value));
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
  // AMQP types that JavaScript does not have arrive as an object with the type: `{ '!': 'timestamp', value:
  // 17 }`.
  if ('!' in value && 'value' in value) return textOf(value.value);
  return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? String(each) : each));
}

/** Ways to make headers smaller, in the order in which they are tried. The first one loses the least. */
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

/**
 * Makes headers fit into `headersBytesMax`: shortens the last error and the list of attempts as far as
 * needed.
 */
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
  // A character has at most 3 bytes in UTF-8. If this upper bound fits, the exact size is not needed.
  if (bytes <= headersBytesMax) return bytes;
  return Object.entries(headers).reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value) + 8,
    0,
  );
}
