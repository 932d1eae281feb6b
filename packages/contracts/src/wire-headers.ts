import type { AttemptRecord } from './attempt-record.ts';
import type { Delivery, Diagnosis, Headers } from './envelope.ts';
import type { ErrorNote } from './error-note.ts';

/**
 * The state of an event that `toWire` writes as message headers, for servers without columns, such as Kafka
 * and SQS.
 */
export interface WireState {
  readonly id: string;
  readonly type: string | undefined;
  readonly key: string | undefined;
  readonly tenant: string | undefined;
  readonly headers: Headers;
  readonly correlationId: string | undefined;
  readonly idempotencyKey: string | undefined;
  readonly originTopic: string | undefined;
  readonly firstSeenAt: number | undefined;
  readonly expiresAt: number | undefined;
  readonly replay: string | undefined;
  readonly attempts: number;
  readonly snoozes: number;
  readonly deaths: number;
  readonly nextDelayMs: number | undefined;
  /** When the event is due, epoch ms. The broker may deliver the message before this time. */
  readonly dueAt?: number | undefined;
  /** `bytes`: the payload is not text. `undefined`: it is text if it is valid UTF-8. */
  readonly payloadKind?: 'bytes' | undefined;
  readonly lastError: ErrorNote | undefined;
  readonly story: readonly AttemptRecord[];
  readonly diagnosis: Diagnosis | undefined;
}

const names = {
  id: 'event-id',
  type: 'event-type',
  key: 'event-key',
  tenant: 'tenant',
  correlationId: 'correlation-id',
  idempotencyKey: 'idempotency-key',
  originTopic: 'origin-topic',
  firstSeenAt: 'first-seen-ts',
  expiresAt: 'expires-ts',
  replay: 'replay-operation',
  attempts: 'retry-attempt',
  snoozes: 'retry-snoozes',
  deaths: 'retry-deaths',
  nextDelayMs: 'next-delay-ms',
  dueAt: 'due-ts',
  payloadKind: 'payload-kind',
  lastError: 'last-error',
  story: 'retry-story',
  reason: 'dlq-reason',
  message: 'dlq-message',
  stop: 'dlq-stop',
  finalAttempt: 'final-attempt',
  consumer: 'dlq-consumer',
} as const;

/** The header names that `toWire` writes. Producers must not use them. */
export const reservedHeaders: ReadonlySet<string> = /* @__PURE__ */ new Set(Object.values(names));

/**
 * Returns headers with everything of an event except its payload. A field with its default value, for example
 * 0 attempts, gets no header.
 */
export function toWire(state: WireState | Delivery): Record<string, string> {
  const wire: Record<string, string> = { ...state.headers };
  const put = (name: string, value: string | number | undefined) => {
    if (value !== undefined) wire[name] = String(value);
  };
  const { id } = state;
  for (const name of ['id', 'type', 'key', 'tenant', 'originTopic'] as const) put(names[name], state[name]);
  for (const name of ['correlationId', 'idempotencyKey'] as const)
    if (state[name] !== id) put(names[name], state[name]);
  for (const name of ['firstSeenAt', 'expiresAt', 'replay', 'nextDelayMs'] as const)
    put(names[name], state[name]);
  if ('dueAt' in state) put(names.dueAt, state.dueAt);
  if ('payloadKind' in state) put(names.payloadKind, state.payloadKind);
  if (state.attempts > 0) put(names.attempts, state.attempts);
  if (state.snoozes > 0) put(names.snoozes, state.snoozes);
  if (state.deaths > 0) put(names.deaths, state.deaths);
  const { diagnosis } = state;
  const lastError = diagnosis?.error ?? state.lastError;
  const story = diagnosis?.story ?? state.story;
  if (lastError) put(names.lastError, JSON.stringify(lastError));
  if (story.length > 0) put(names.story, JSON.stringify(story));
  if (diagnosis) {
    put(names.reason, diagnosis.reason);
    put(names.message, diagnosis.message);
    put(names.stop, diagnosis.stop);
    put(names.finalAttempt, diagnosis.finalAttempt);
    put(names.consumer, diagnosis.consumer);
  }
  return wire;
}

/**
 * Reads the headers that `toWire` wrote, and ignores invalid ones. A field without a header gets its default
 * value.
 */
export function fromWire(wire: Headers): WireState {
  const headers = ownHeaders(wire);
  const lastError = readJson<ErrorNote>(wire[names.lastError], isErrorNote);
  const story = readJson<AttemptRecord[]>(wire[names.story], Array.isArray) ?? [];
  const stop = wire[names.stop];
  return {
    id: wire[names.id] ?? '',
    type: wire[names.type],
    key: wire[names.key],
    tenant: wire[names.tenant],
    headers,
    correlationId: wire[names.correlationId],
    idempotencyKey: wire[names.idempotencyKey],
    originTopic: wire[names.originTopic],
    firstSeenAt: readNumber(wire[names.firstSeenAt]),
    expiresAt: readNumber(wire[names.expiresAt]),
    replay: wire[names.replay],
    attempts: readNumber(wire[names.attempts]) ?? 0,
    snoozes: readNumber(wire[names.snoozes]) ?? 0,
    deaths: readNumber(wire[names.deaths]) ?? 0,
    nextDelayMs: readNumber(wire[names.nextDelayMs]),
    dueAt: readNumber(wire[names.dueAt]),
    payloadKind: wire[names.payloadKind] === 'bytes' ? 'bytes' : undefined,
    lastError,
    story,
    diagnosis:
      stop === undefined
        ? undefined
        : {
            reason: wire[names.reason] ?? '',
            message: wire[names.message] ?? '',
            stop,
            finalAttempt: readNumber(wire[names.finalAttempt]) ?? 0,
            consumer: wire[names.consumer],
            error: lastError,
            story,
          },
  };
}

function ownHeaders(wire: Headers): Headers {
  const headers: Record<string, string> = {};
  for (const name in wire) {
    if (reservedHeaders.has(name)) continue;
    // An assignment to `__proto__` would change the prototype instead of adding a header.
    if (name === '__proto__') Object.defineProperty(headers, name, { value: wire[name], enumerable: true });
    else headers[name] = wire[name]!;
  }
  return headers;
}

function readNumber(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  const value = Number(text);
  return value >= 0 && value < Infinity ? value : undefined;
}

function readJson<T>(text: string | undefined, isRight: (value: unknown) => boolean): T | undefined {
  if (text === undefined) return undefined;
  try {
    const value = JSON.parse(text);
    return isRight(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isErrorNote(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'type' in value && 'fingerprint' in value;
}
