import { OptionsError } from 'holdfast';
import { TooLargeError } from './contract-errors.ts';
import type { Payload } from './envelope.ts';
import { assertDurationMs, assertName } from './for-engines.ts';
import type { JournalEntry, NewAssembly, NewSignal, QueueLimits, StepRecord } from './journal.ts';
import { assertReason } from './parked-filter.ts';
import type { SizeLimits } from './size-limits.ts';

/** Throws for the first entry that the engine cannot store. Engines call it before they write anything. */
export function assertEntries(entries: readonly JournalEntry[], limits: SizeLimits): void {
  for (const entry of entries) {
    if (entry.kind === 'start') {
      assertNewAssembly(entry.start, limits);
      continue;
    }
    for (const step of entry.steps) assertStep(step, limits);
    for (const start of entry.starts ?? []) assertNewAssembly(start, limits);
    for (const signal of entry.signals ?? []) assertSignal(signal, limits);
    if (entry.next?.kind === 'done') assertStored('result', entry.next.result, limits);
  }
}

/**
 * Throws for an assembly (work in several steps) with an invalid or too large field. Engines call it before
 * they write anything.
 */
export function assertNewAssembly(start: NewAssembly, limits: SizeLimits): void {
  for (const name of ['id', 'name'] as const) assertText(name, start[name], limits);
  for (const name of ['queue', 'key', 'tenant'] as const) {
    if (start[name] !== undefined) assertText(name, start[name], limits);
  }
  if (!(Number.isSafeInteger(start.version) && start.version >= 0))
    throw new OptionsError('version', start.version, 'a whole number from 0');
  for (const name of ['patienceMs', 'dueInMs', 'keepMs'] as const) assertDurationMs(name, start[name]);
  if (start.input === undefined) throw new OptionsError('input', start.input, 'text or bytes');
  assertStored('input', start.input, limits);
}

/** Throws for a signal with an invalid or too large field. Engines call it before they write anything. */
export function assertSignal(signal: NewSignal, limits: SizeLimits): void {
  for (const name of ['to', 'id', 'name'] as const) assertText(`signal.${name}`, signal[name], limits);
  assertStored('signal.payload', signal.payload, limits);
  if (signal.act) assertReason(signal.act);
}

/** Throws if a payload (for example an input or a step result) is larger than the engine stores. */
export function assertStored(path: string, payload: Payload | undefined, limits: SizeLimits): void {
  if (payload === undefined) return;
  if (typeof payload !== 'string' && !(payload instanceof Uint8Array))
    throw new OptionsError(path, payload, 'text or bytes');
  // A character has at most 3 bytes in UTF-8, so the bytes of a short text need not be counted.
  if (payload.length * 3 <= limits.payloadBytesMax) return;
  const bytes = typeof payload === 'string' ? encoder.encode(payload).length : payload.length;
  if (bytes > limits.payloadBytesMax)
    throw new TooLargeError(`${path} in bytes`, bytes, limits.payloadBytesMax);
}

/** Throws for queue limits that are not valid numbers, or for an invalid queue name. */
export function assertQueueLimits(name: string, limits: QueueLimits, sizes: SizeLimits): void {
  assertText('queue', name, sizes);
  for (const each of ['concurrency', 'concurrencyByKey'] as const) {
    const value = limits[each];
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= 0))
      throw new OptionsError(`queue.${each}`, value, 'a whole number from 0');
  }
  for (const each of ['rate', 'rateByKey'] as const) {
    const rate = limits[each];
    if (rate !== undefined && !(rate.count >= 1 && rate.perMs > 0 && rate.count / rate.perMs < Infinity))
      throw new OptionsError(`queue.${each}`, rate, 'a count from 1, and perMs above 0');
  }
}

function assertStep({ path, dueInMs, result }: StepRecord, limits: SizeLimits): void {
  if (typeof path !== 'string' || path === '')
    throw new OptionsError('step.path', path, 'the path of a step');
  assertName('step.path', path);
  assertDurationMs('step.dueInMs', dueInMs);
  assertStored('step.result', result, limits);
}

function assertText(path: string, text: string, { keyLengthMax }: SizeLimits): void {
  if (typeof text !== 'string' || text === '') throw new OptionsError(path, text, 'a text that is not empty');
  assertName(path, text);
  if (text.length > keyLengthMax) throw new TooLargeError(`${path}.length`, text.length, keyLengthMax);
}

const encoder = /* @__PURE__ */ new TextEncoder();
