import { OptionsError } from 'holdfast';
import { TooLargeError } from './contract-errors.ts';
import type { NewEvent } from './envelope.ts';
import { reservedHeaders } from './wire-headers.ts';

/** What an engine takes. */
export interface SizeLimits {
  readonly payloadBytesMax: number;
  /** Names and values together. */
  readonly headersBytesMax: number;
  /** Events in one publish. */
  readonly batchMax: number;
  readonly keyLengthMax: number;
}

export const defaultSizeLimits: SizeLimits = {
  payloadBytesMax: 1024 * 1024,
  headersBytesMax: 16 * 1024,
  batchMax: 10_000,
  keyLengthMax: 512,
};

/** Throws for the first thing that cannot be stored; called before anything is. */
export function checkEvents(events: readonly NewEvent[], limits: SizeLimits): void {
  if (events.length > limits.batchMax) {
    throw new TooLargeError('the number of events in the batch', events.length, limits.batchMax);
  }
  for (const [index, event] of events.entries()) checkEvent(event, `events[${index}]`, limits);
}

function checkEvent(event: NewEvent, path: string, limits: SizeLimits): void {
  const { payload, headers = {}, delayMs, dueAt, patienceMs } = event;
  // A string that is short enough in the worst case need not be measured.
  if (payload.length * 3 > limits.payloadBytesMax) {
    checkSize(`${path}.payload in bytes`, bytesOf(payload), limits.payloadBytesMax);
  }
  for (const name of ['id', 'key', 'tenant', 'type', 'correlationId', 'idempotencyKey'] as const) {
    checkSize(`${path}.${name}.length`, event[name]?.length ?? 0, limits.keyLengthMax);
    if (event[name] === '') throw new OptionsError(`${path}.${name}`, '', 'a text, or nothing at all');
  }
  let headersBytes = 0;
  for (const [name, value] of Object.entries(headers)) {
    if (reservedHeaders.has(name))
      throw new OptionsError(`${path}.headers`, name, 'a name that is not reserved');
    headersBytes += bytesOf(name) + bytesOf(value);
  }
  checkSize(`${path}.headers in bytes`, headersBytes, limits.headersBytesMax);
  if (delayMs !== undefined && dueAt !== undefined) {
    throw new OptionsError(`${path}.dueAt`, dueAt, 'nothing beside delayMs');
  }
  for (const [name, value] of Object.entries({ delayMs, dueAt, patienceMs })) {
    if (value !== undefined && !(value >= 0 && value < Infinity)) {
      throw new OptionsError(`${path}.${name}`, value, 'a number of ms from 0');
    }
  }
}

function checkSize(what: string, size: number, sizeMax: number): void {
  if (size > sizeMax) throw new TooLargeError(what, size, sizeMax);
}

const encoder = /* @__PURE__ */ new TextEncoder();

function bytesOf(payload: string | Uint8Array): number {
  return typeof payload === 'string' ? encoder.encode(payload).length : payload.length;
}
