import type { Payload } from '@holdfast/contracts';
import { OptionsError } from 'holdfast';
import { PoisonError } from '../consumer/event-errors.ts';

/** How payloads are stored. `json`: any value, as JSON. `raw`: text or bytes, unchanged. */
export type PayloadFormat = 'json' | 'raw';

export function assertFormat(format: PayloadFormat): PayloadFormat {
  if (format !== 'json' && format !== 'raw') throw new OptionsError('format', format, 'json or raw');
  return format;
}

export function encode(format: PayloadFormat, payload: unknown): Payload {
  if (format === 'json') {
    const text = JSON.stringify(payload);
    if (text === undefined) throw new OptionsError('payload', typeof payload, 'something that JSON can hold');
    return text;
  }
  if (typeof payload === 'string' || payload instanceof Uint8Array) return payload;
  throw new OptionsError('payload', payload, 'text or bytes, because the format is raw');
}

/**
 * Parses a stored payload. Throws a `PoisonError` if the payload is not JSON, because a retry would not help.
 */
export function decode(format: PayloadFormat, payload: Payload): unknown {
  if (format === 'raw') return payload;
  try {
    return JSON.parse(typeof payload === 'string' ? payload : decoder.decode(payload));
  } catch (cause) {
    throw new PoisonError([`the payload is not JSON: ${(cause as Error).message}`], { cause });
  }
}

const decoder = /* @__PURE__ */ new TextDecoder('utf-8', { fatal: true });
