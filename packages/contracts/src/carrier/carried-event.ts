import type { Settlement } from '../broker.ts';
import type { AttemptState, Diagnosis, Envelope, Moved, NewEvent, Payload } from '../envelope.ts';
import type { NewlyParked } from '../triage.ts';
import { fromWire, toWire, type WireState } from '../wire-headers.ts';
import type { Arrival, Carrier, Message, QueueName } from './carrier.ts';

/** An event that was read from a message of the message broker. */
export interface CarriedEvent extends Envelope, AttemptState {
  readonly diagnosis: Diagnosis | undefined;
  /** When the event is due, epoch ms. A time in the past means that it is due now. */
  readonly dueAt: number;
}

type Received = Omit<Arrival<unknown>, 'handle' | 'askedAt'>;

export function readEvent(arrival: Received, topic: string, queue: QueueName): CarriedEvent {
  const state = fromWire(arrival.headers);
  const id = state.id || arrival.messageId;
  // A message in a dead-letter topic still has the attempts of its original topic. Its new consumer starts at
  // 0 attempts.
  const isFresh = queue === 'hot' && state.diagnosis !== undefined;
  // This code runs for each message. An object spread would cost more than everything else in this function.
  return {
    id,
    topic,
    payload: payloadOf(arrival.payload, state.payloadKind),
    type: state.type,
    key: state.key ?? arrival.key,
    tenant: state.tenant,
    headers: state.headers,
    correlationId: state.correlationId ?? id,
    idempotencyKey: state.idempotencyKey ?? id,
    originTopic: state.originTopic ?? topic,
    firstSeenAt: state.firstSeenAt ?? arrival.at,
    expiresAt: state.expiresAt,
    replay: state.replay,
    attempts: isFresh ? 0 : state.attempts,
    snoozes: isFresh ? 0 : state.snoozes,
    deaths: 0,
    nextDelayMs: isFresh ? undefined : state.nextDelayMs,
    lastError: state.lastError,
    story: state.story,
    diagnosis: state.diagnosis,
    dueAt: state.dueAt ?? 0,
  };
}

const utf8 = /* @__PURE__ */ new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Returns the payload as text or bytes. Messages of other producers do not say which of the two it is: valid
 * UTF-8 counts as text.
 */
function payloadOf(payload: Payload, kind: 'bytes' | undefined): Payload {
  if (typeof payload === 'string') return payload;
  try {
    if (kind !== 'bytes') return utf8.decode(payload);
  } catch {
    // The bytes are not valid UTF-8, so the payload is not text.
  }
  // Copy the bytes. Otherwise a small payload could keep a large network buffer in memory.
  return new Uint8Array(payload);
}

type Teller = Pick<Carrier, 'tells'>;

/**
 * Returns the message for an event that is published for the first time, or moves here from another engine.
 */
export function newMessage(
  event: NewEvent,
  id: string,
  topic: string,
  now: number,
  carrier: Teller,
): Message {
  const { past, patienceMs, delayMs = 0, dueAt } = event;
  const dueIn = dueAt === undefined ? delayMs : Math.max(0, dueAt - now);
  const { attempts = 0, snoozes = 0, nextDelayMs, lastError, story = [] } = past?.moved ?? {};
  const state: WireState = {
    ...{ id, attempts, snoozes, deaths: 0, nextDelayMs, lastError, story, diagnosis: undefined },
    ...{ type: event.type, key: event.key, tenant: event.tenant, headers: event.headers ?? {} },
    ...{ correlationId: event.correlationId, idempotencyKey: event.idempotencyKey },
    originTopic: past?.originTopic === topic ? undefined : past?.originTopic,
    firstSeenAt: past?.firstSeenAt ?? (carrier.tells.time ? undefined : now),
    expiresAt: patienceMs === undefined ? undefined : now + patienceMs,
    replay: past?.replay,
    ...(dueIn > 0 && { dueAt: now + dueIn }),
  };
  const dedupId = past?.replay === undefined ? id : `${id}/${past.replay}`;
  return message(state, event.payload, dedupId, dueIn, carrier);
}

/** The fields of an event that differ in its new message, for example the attempts of a retry. */
export type Change = Partial<AttemptState> & { readonly diagnosis?: Diagnosis; readonly delayMs?: number };

/** Returns the message that replaces the message `messageId`: a retry, a rerouted event or a parked event. */
export function copyMessage(
  event: CarriedEvent,
  { delayMs = 0, ...change }: Change,
  messageId: string,
  now: number,
  carrier: Teller,
): Message {
  const state = { ...event, ...change, dueAt: delayMs > 0 ? now + delayMs : undefined };
  return message(state, event.payload, `${messageId}>`, delayMs, carrier);
}

function message(
  state: WireState,
  payload: Payload,
  dedupId: string,
  delayMs: number,
  { tells }: Teller,
): Message {
  const headers = toWire({
    ...state,
    ...(tells.key && { key: undefined }),
    payloadKind: typeof payload === 'string' ? undefined : 'bytes',
  });
  return { dedupId, headers, payload, key: state.key, delayMs };
}

/**
 * Returns the event in the form in which it is published to the store (an engine beside the message broker).
 */
export function movedEvent(
  event: CarriedEvent,
  now: number,
  { delayMs, ...change }: Change & Moved = {},
): NewEvent {
  const { id, payload, type, key, tenant, headers, correlationId, idempotencyKey, expiresAt } = event;
  const { originTopic, firstSeenAt, replay, attempts, snoozes, nextDelayMs, lastError, story } = event;
  const kept = { attempts, snoozes, nextDelayMs, lastError, story, ...change };
  return {
    ...{ id, payload, headers, correlationId, idempotencyKey },
    ...(type !== undefined && { type }),
    ...(key !== undefined && { key }),
    ...(tenant !== undefined && { tenant }),
    ...(expiresAt !== undefined && { patienceMs: Math.max(0, expiresAt - now) }),
    ...(delayMs !== undefined ? { delayMs } : event.dueAt > now && { dueAt: event.dueAt }),
    past: { originTopic, firstSeenAt, moved: definedOf(kept), ...(replay !== undefined && { replay }) },
  };
}

function definedOf(moved: { readonly [name in keyof Moved]: Moved[name] | undefined }): Moved {
  return Object.fromEntries(Object.entries(moved).filter(([, value]) => value !== undefined));
}

export function newlyParked(
  event: CarriedEvent,
  diagnosis: Diagnosis,
  { keepMs }: Settlement & { kind: 'park' },
): NewlyParked {
  const { id, topic, payload, type, key, tenant, headers, correlationId, idempotencyKey } = event;
  const { originTopic, firstSeenAt, expiresAt, replay } = event;
  return {
    ...{ id, topic, payload, type, key, tenant, headers, correlationId, idempotencyKey },
    ...{ originTopic, firstSeenAt, expiresAt, replay, diagnosis },
    ...(keepMs !== undefined && { keepMs }),
  };
}
