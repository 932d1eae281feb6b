import type { Payload } from '@holdfast/contracts';

/**
 * A payload as columns. PostgreSQL texts cannot contain NUL, so such a text is stored as bytes, with
 * `bytesAreText`.
 */
export interface PayloadColumns {
  readonly body: string | null;
  readonly bytes: Uint8Array | null;
  readonly bytesAreText: boolean;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function payloadColumns(payload: Payload): PayloadColumns {
  if (typeof payload !== 'string') return { body: null, bytes: bufferOf(payload), bytesAreText: false };
  if (!payload.includes('\0')) return { body: payload, bytes: null, bytesAreText: false };
  return { body: null, bytes: bufferOf(encoder.encode(payload)), bytesAreText: true };
}

export function payloadOf(body: unknown, bytes: unknown, bytesAreText: unknown): Payload {
  if (typeof body === 'string') return body;
  return bytesAreText === true ? decoder.decode(bytes as Uint8Array) : new Uint8Array(bytes as Uint8Array);
}

/** The driver accepts bytes only as a `Buffer`. */
function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
