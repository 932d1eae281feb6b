import { OptionsError } from 'holdfast';
import { TooLargeError } from './contract-errors.ts';
import type { Headers, Moved, NewEvent, Past, Payload } from './envelope.ts';
import { assertName } from './for-engines.ts';
import type { Edit } from './triage.ts';
import { reservedHeaders } from './wire-headers.ts';

/** The largest events and batches that an engine stores. */
export interface SizeLimits {
  readonly payloadBytesMax: number;
  readonly headersBytesMax: number;
  readonly batchMax: number;
  readonly keyLengthMax: number;
}

/** Limits that differ from `defaultSizeLimits`. */
export interface SizeLimitOptions {
  /** The most bytes of a payload. Default: `1048576` (1 MiB). */
  readonly payloadBytesMax?: number;
  /** The most bytes of all header names and values of an event together. Default: `16384` (16 KiB). */
  readonly headersBytesMax?: number;
  /** The most events in one publish. Default: `10000`; in SQLite `1000`. */
  readonly batchMax?: number;
  /** The most characters of a key. Default: `512`. */
  readonly keyLengthMax?: number;
}

/** The size limits of an engine whose options set no others. */
export const defaultSizeLimits: SizeLimits = {
  payloadBytesMax: 1024 * 1024,
  headersBytesMax: 16 * 1024,
  batchMax: 10_000,
  keyLengthMax: 512,
};

/** Returns the given limits, with defaults for missing ones. Throws for unknown names and invalid values. */
export function readLimits(
  given: SizeLimitOptions | undefined,
  defaults: SizeLimits = defaultSizeLimits,
): SizeLimits {
  for (const [name, value] of Object.entries(given ?? {})) {
    if (!Object.hasOwn(defaults, name)) {
      throw new OptionsError('limits', name, `one of ${Object.keys(defaults).join(', ')}`);
    }
    if (!(typeof value === 'number' && value >= 1))
      throw new OptionsError(`limits.${name}`, value, 'a number from 1');
  }
  return { ...defaults, ...given };
}

/** Throws for the first event that the engine cannot store. Engines call it before they store anything. */
export function assertEvents(events: readonly NewEvent[], limits: SizeLimits): void {
  if (events.length > limits.batchMax) {
    throw new TooLargeError('the number of events in the batch', events.length, limits.batchMax);
  }
  for (let index = 0; index < events.length; index++) assertEvent(events[index]!, index, limits);
}

/** Throws for an edit that is too large or invalid: every replay of the edited event would fail. */
export function assertEdit({ payload, headers }: Edit, limits: SizeLimits): void {
  if (payload !== undefined) assertPayload(payload, 'payload', limits);
  if (headers !== undefined) assertHeaders(headers, 'headers', limits);
}

const texts = ['id', 'key', 'tenant', 'type', 'correlationId', 'idempotencyKey'] as const;
const times = ['delayMs', 'dueAt', 'patienceMs'] as const;

// This function runs twice per event, so it must allocate no objects for a valid event.
function assertEvent(event: NewEvent, index: number, limits: SizeLimits): void {
  const { payload, headers, delayMs, dueAt, past } = event;
  // A character has at most 3 bytes in UTF-8, so the bytes of a short text need not be counted.
  if (typeof payload !== 'string' || payload.length * 3 > limits.payloadBytesMax)
    assertPayload(payload, `events[${index}].payload`, limits);
  for (const name of texts) {
    const text = event[name];
    if (text === undefined) continue;
    // Refuse numbers and empty texts: some engines would store them as something else.
    if (typeof text !== 'string' || text === '')
      throw new OptionsError(`events[${index}].${name}`, text, 'a text, or nothing at all');
    if (text.includes('\0')) assertName(`events[${index}].${name}`, text);
    if (text.length > limits.keyLengthMax)
      assertSize(`events[${index}].${name}.length`, text.length, limits.keyLengthMax);
  }
  if (headers !== undefined) assertHeaders(headers, `events[${index}].headers`, limits);
  if (delayMs !== undefined && dueAt !== undefined) {
    throw new OptionsError(`events[${index}].dueAt`, dueAt, 'nothing beside delayMs');
  }
  for (const name of times) {
    const value = event[name];
    if (value !== undefined && !isTime(value)) {
      throw new OptionsError(`events[${index}].${name}`, value, 'a number of ms from 0');
    }
  }
  if (past === undefined) return;
  assertPast(past, `events[${index}].past`);
  if (past.moved?.blocking === true && event.key === undefined)
    throw new OptionsError(`events[${index}].key`, event.key, 'a key, because the event blocks it');
}

function assertPast(past: Past, path: string): void {
  if (!(typeof past?.originTopic === 'string' && isTime(past.firstSeenAt)))
    throw new OptionsError(path, past, 'an originTopic and a firstSeenAt');
  assertName(`${path}.originTopic`, past.originTopic);
  assertName(`${path}.replay`, past.replay);
  if (past.moved !== undefined) assertMoved(past.moved, `${path}.moved`);
}

function assertMoved(moved: Moved, path: string): void {
  if (typeof moved !== 'object' || moved === null)
    throw new OptionsError(path, moved, 'what the event keeps of its attempts');
  const { attempts = 0, snoozes = 0, nextDelayMs = 0, lastError, story = [] } = moved;
  for (const [name, count] of Object.entries({ attempts, snoozes }))
    if (!(Number.isSafeInteger(count) && count >= 0))
      throw new OptionsError(`${path}.${name}`, count, 'a whole number from 0');
  if (!isTime(nextDelayMs))
    throw new OptionsError(`${path}.nextDelayMs`, nextDelayMs, 'a number of ms from 0');
  if (lastError !== undefined && typeof lastError?.fingerprint !== 'string')
    throw new OptionsError(`${path}.lastError`, lastError, 'an error note');
  if (!Array.isArray(story)) throw new OptionsError(`${path}.story`, story, 'a list of attempts');
}

function assertPayload(payload: Payload, path: string, limits: SizeLimits): void {
  if (typeof payload !== 'string' && !(payload instanceof Uint8Array))
    throw new OptionsError(path, payload, 'text or bytes');
  assertSize(`${path} in bytes`, bytesOf(payload), limits.payloadBytesMax);
}

function assertHeaders(headers: Headers, path: string, limits: SizeLimits): void {
  let bytes = 0;
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers))
    throw new OptionsError(path, headers, 'texts by their names');
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== 'string') throw new OptionsError(`${path}.${name}`, value, 'a text');
    if (reservedHeaders.has(name)) throw new OptionsError(path, name, 'a name that is not reserved');
    bytes += bytesOf(name) + bytesOf(value);
  }
  assertSize(`${path} in bytes`, bytes, limits.headersBytesMax);
}

function isTime(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value < Infinity;
}

function assertSize(what: string, size: number, sizeMax: number): void {
  if (size > sizeMax) throw new TooLargeError(what, size, sizeMax);
}

const encoder = /* @__PURE__ */ new TextEncoder();

function bytesOf(payload: string | Uint8Array): number {
  return typeof payload === 'string' ? encoder.encode(payload).length : payload.length;
}
