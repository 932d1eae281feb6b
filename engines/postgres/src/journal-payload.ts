import type { Payload } from '@holdfast/contracts';

/**
 * The first byte of a payload in the bytes column: 0 for bytes, 1 for a text with NUL. (A text column refuses
 * NUL.)
 */
const BYTES = 0;
const TEXT = 1;

/** Returns a payload as two columns, text and bytes. One of them is null. */
export function payloadPair(payload: Payload | undefined): readonly [string | null, Buffer | null] {
  if (payload === undefined) return [null, null];
  if (typeof payload !== 'string') return [null, Buffer.concat([Buffer.of(BYTES), payload])];
  if (!payload.includes('\0')) return [payload, null];
  return [null, Buffer.concat([Buffer.of(TEXT), Buffer.from(payload)])];
}

export function payloadFrom(text: unknown, bytes: unknown): Payload | undefined {
  if (typeof text === 'string') return text;
  if (!(bytes instanceof Uint8Array)) return undefined;
  const rest = bytes.subarray(1);
  return bytes[0] === TEXT ? Buffer.from(rest).toString() : new Uint8Array(rest);
}
