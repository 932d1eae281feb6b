import type { Payload } from '@holdfast/contracts';

/**
 * A payload as columns. PostgreSQL's text type accepts every character except NUL, so a text with NUL is stored as
 * bytes, with `bytesAreText`.
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

/** Converts bytes to a `Buffer`, the class by which the driver recognises bytes. */
function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
