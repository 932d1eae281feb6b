import type { MessageAttributeValue, Message as SqsMessage } from '@aws-sdk/client-sqs';
import { type Headers, type Payload, TooLargeError } from '@holdfast/contracts';
import type { Message as Sent } from '@holdfast/contracts/carrier';

/**
 * The most bytes of a message, and of a batch. The body, and the names, types and values of attributes count.
 */
export const messageBytesMax = 1024 * 1024;
/**
 * The most bytes of a payload that is sent as base64. Base64 is a third longer, and headers need room, too.
 */
const encodedBytesMax = 700_000;

/** The attribute with all headers as JSON. SQS allows at most ten attributes, and no empty values. */
const headersName = 'holdfast';
/** The attribute that says how the body is encoded, if it is not the payload itself: `base64` or `empty`. */
const encodingName = 'holdfast-body';
const emptyBody = '-';

/** A message in the form that is sent to SQS. */
export interface Encoded {
  readonly body: string;
  readonly attributes: Record<string, MessageAttributeValue>;
  readonly bytes: number;
}

/** Characters that SQS refuses in a body. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what the expression is about.
const refused = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|\p{Cs}/u;

/**
 * Headers that are removed, in this order, if a message is too large. They only describe earlier attempts.
 */
const spare = ['retry-story', 'last-error'] as const;

export function encodeMessage({ headers, payload }: Pick<Sent, 'headers' | 'payload'>): Encoded {
  const { body, encoding } = bodyOf(payload);
  const left: Record<string, string> = { ...headers };
  for (const name of [...spare, undefined]) {
    const encoded = withHeaders(body, encoding, left);
    if (encoded.bytes <= messageBytesMax) return encoded;
    if (name === undefined) throw new TooLargeError('the message in bytes', encoded.bytes, messageBytesMax);
    delete left[name];
  }
  throw new TypeError('unreachable');
}

function bodyOf(payload: Payload): { body: string; encoding?: 'base64' | 'empty' } {
  if (payload.length === 0) return { body: emptyBody, encoding: 'empty' };
  if (typeof payload === 'string' && !refused.test(payload)) return { body: payload };
  const bytes = Buffer.from(payload as Uint8Array);
  if (bytes.length > encodedBytesMax) {
    const what = typeof payload === 'string' ? 'text with characters that SQS refuses' : 'bytes';
    throw new TooLargeError(`a payload of ${what}, in bytes,`, bytes.length, encodedBytesMax);
  }
  return { body: bytes.toString('base64'), encoding: 'base64' };
}

function withHeaders(body: string, encoding: string | undefined, headers: Headers): Encoded {
  // SQS refuses these two characters, and `JSON.stringify` does not escape them.
  const json = JSON.stringify(headers).replace(/[\ufffe\uffff]/g, (sign) =>
    sign === '\ufffe' ? '\\ufffe' : '\\uffff',
  );
  const attributes = {
    [headersName]: textAttribute(json),
    ...(encoding !== undefined && { [encodingName]: textAttribute(encoding) }),
  };
  const sizes = Object.entries(attributes).map(([name, value]) =>
    Buffer.byteLength(name + value.DataType + value.StringValue),
  );
  return { body, attributes, bytes: sizes.reduce((sum, size) => sum + size, Buffer.byteLength(body)) };
}

function textAttribute(text: string): { DataType: 'String'; StringValue: string } {
  return { DataType: 'String', StringValue: text };
}

/**
 * Decodes a message. A message without our attribute comes from another program: its attributes become the
 * headers.
 */
export function decodeMessage({ Body = '', MessageAttributes = {}, Attributes = {} }: SqsMessage): {
  readonly headers: Headers;
  readonly payload: Payload;
  readonly key: string | undefined;
} {
  const { [headersName]: ours, [encodingName]: encoding, ...others } = MessageAttributes;
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(others)) headers[name] = textOf(value);
  const written = headersIn(ours?.StringValue);
  if (written === undefined && ours) headers[headersName] = textOf(ours);
  return {
    headers: { ...headers, ...written },
    payload: payloadOf(Body, encoding?.StringValue),
    key: written === undefined ? Attributes.MessageGroupId : undefined,
  };
}

function payloadOf(body: string, encoding: string | undefined): Payload {
  if (encoding === 'empty') return new Uint8Array(0);
  return encoding === 'base64' ? Buffer.from(body, 'base64') : body;
}

function textOf({ StringValue, BinaryValue }: MessageAttributeValue): string {
  return StringValue ?? (BinaryValue ? Buffer.from(BinaryValue).toString('base64') : '');
}

function headersIn(json: string | undefined): Record<string, string> | undefined {
  try {
    const value: unknown = JSON.parse(json ?? 'null');
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return Object.fromEntries(Object.entries(value).map(([name, text]) => [name, String(text)]));
  } catch {
    return undefined;
  }
}
