import type {
  AttemptRecord,
  AttemptState,
  Delivery,
  Envelope,
  ErrorNote,
  Headers,
  NewEvent,
  Payload,
} from '@holdfast/contracts';
import type { Time } from './store-clock.ts';

/**
 * The columns that a lease reads, in the order of `EventRow`. Reading columns is slow, so rarely used ones
 * are left out.
 */
export const eventColumns = `event.seq, event.id, event.payload, event.type, event.key, event.tenant, event.rest,
  event.first_seen_at, event.due_at, event.attempts + event.snoozes + event.deaths AS tried`;

export type EventRow = [
  seq: number,
  id: string,
  payload: Payload,
  type: string | null,
  key: string | null,
  tenant: string | null,
  rest: string | null,
  firstSeenAt: number,
  dueAt: number,
  tried: number,
];

export const at = { seq: 0, payload: 2, key: 4, tenant: 5, rest: 6, dueAt: 8, tried: 9 } as const;

/** The columns with the attempts of an event, in the order of `TrialRow`. */
export const trialColumns = `event.order_key, event.attempts, event.snoozes, event.deaths, event.next_delay_ms,
  event.last_error, event.story`;

export type TrialRow = [
  orderKey: string | null,
  attempts: number,
  snoozes: number,
  deaths: number,
  nextDelayMs: number | null,
  lastError: string | null,
  story: string | null,
];

const eventWidth = 10;
const trialWidth = 7;

export function trialsIn(row: EventRow): TrialRow | undefined {
  const values: unknown[] = row;
  return values.length === eventWidth + trialWidth ? (values.slice(eventWidth) as TrialRow) : undefined;
}

/** Fields that few events have, stored as JSON in the column `rest`. */
interface Rest {
  readonly headers?: Headers;
  readonly correlationId?: string;
  readonly idempotencyKey?: string;
  readonly originTopic?: string;
  /** Epoch ms by the store's clock, not by the wall clock. */
  readonly expiresAt?: number;
  readonly replay?: string;
}

type Row = Record<string, unknown>;

const nothing: Rest = Object.freeze({});
const noHeaders: Headers = Object.freeze({});
const noStory: readonly AttemptRecord[] = Object.freeze([]);
const untried: AttemptState = Object.freeze({
  attempts: 0,
  snoozes: 0,
  deaths: 0,
  nextDelayMs: undefined,
  lastError: undefined,
  story: noStory,
});

export function restOf(event: NewEvent, now: number): string | null {
  const { headers, correlationId, idempotencyKey, past, patienceMs } = event;
  if (!(headers || correlationId || idempotencyKey || past) && patienceMs === undefined) return null;
  const rest: Rest = {
    ...(headers && { headers }),
    ...(correlationId && { correlationId }),
    ...(idempotencyKey && { idempotencyKey }),
    ...(past && { originTopic: past.originTopic }),
    ...(past?.replay && { replay: past.replay }),
    ...(patienceMs !== undefined && { expiresAt: now + patienceMs }),
  };
  return JSON.stringify(rest);
}

function toToken(leaseId: number, seq: number): string {
  return `${leaseId}.${seq}`;
}

export interface Token {
  readonly leaseId: number;
  readonly seq: number;
}

/**
 * Reads the lease id and the event number from a token such as `17.230`. Returns `undefined` for a token that
 * this engine cannot have created.
 */
export function fromToken(token: string): Token | undefined {
  const dot = token.indexOf('.');
  if (dot < 0) return undefined;
  const leaseId = Number(token.slice(0, dot));
  const seq = Number(token.slice(dot + 1));
  return Number.isSafeInteger(leaseId) && Number.isSafeInteger(seq) ? { leaseId, seq } : undefined;
}

/** True if the event was tried in this topic, or came from another topic. */
export function mayHaveTrials(row: EventRow): boolean {
  const rest = row[at.rest];
  return row[at.tried] > 0 || rest?.includes('"originTopic":') === true;
}

export function toDelivery(
  row: EventRow,
  topic: string,
  leaseId: number,
  { now, wall }: Time,
  trials: TrialRow | undefined,
): Delivery {
  const id = row[1];
  const rest: Rest = row[6] === null ? nothing : JSON.parse(row[6]);
  const { attempts, snoozes, deaths, nextDelayMs, lastError, story } = trials ? readTrials(trials) : untried;
  return {
    id,
    topic,
    payload: row[2],
    type: row[3] ?? undefined,
    key: row[4] ?? undefined,
    tenant: row[5] ?? undefined,
    headers: rest.headers ?? noHeaders,
    correlationId: rest.correlationId ?? id,
    idempotencyKey: rest.idempotencyKey ?? id,
    originTopic: rest.originTopic ?? topic,
    firstSeenAt: row[7],
    expiresAt: rest.expiresAt === undefined ? undefined : rest.expiresAt - now + wall,
    replay: rest.replay,
    attempts,
    snoozes,
    deaths,
    nextDelayMs,
    lastError,
    story,
    lease: { topic, id, token: toToken(leaseId, row[0]) },
    attempt: attempts + 1,
    patienceLeftMs: rest.expiresAt === undefined ? Infinity : Math.max(0, rest.expiresAt - now),
    suspect: deaths > 0,
    diagnosis: undefined,
  };
}

/** Reads an event without its attempts. `aheadMs`: how far the wall clock is ahead of the store's clock. */
export function toEnvelope(row: Row, topic: string, aheadMs: number): Envelope {
  const id = String(row.id);
  const rest: Rest = row.rest === null ? nothing : JSON.parse(String(row.rest));
  const text = (name: string) => (row[name] as string | null) ?? undefined;
  return {
    id,
    topic,
    payload: row.payload as Payload,
    type: text('type'),
    key: text('key'),
    tenant: text('tenant'),
    headers: rest.headers ?? noHeaders,
    correlationId: rest.correlationId ?? id,
    idempotencyKey: rest.idempotencyKey ?? id,
    originTopic: rest.originTopic ?? topic,
    firstSeenAt: Number(row.first_seen_at),
    expiresAt: rest.expiresAt === undefined ? undefined : rest.expiresAt + aheadMs,
    replay: rest.replay,
  };
}

export function toTrials(row: Row): AttemptState {
  const { order_key, attempts, snoozes, deaths, next_delay_ms, last_error, story } = row;
  return readTrials([order_key, attempts, snoozes, deaths, next_delay_ms, last_error, story] as TrialRow);
}

function readTrials([, attempts, snoozes, deaths, nextDelayMs, lastError, story]: TrialRow): AttemptState {
  return {
    attempts,
    snoozes,
    deaths,
    nextDelayMs: nextDelayMs ?? undefined,
    lastError: lastError === null ? undefined : readError(lastError),
    story: story === null ? noStory : JSON.parse(story),
  };
}

/**
 * The error that was read or written last. It is kept, because in an outage many events have the same error,
 * and parsing it is slow.
 */
let latest: { readonly note: ErrorNote; readonly text: string } | undefined;

function readError(text: string): ErrorNote {
  if (latest?.text !== text) latest = { note: JSON.parse(text), text };
  return latest.note;
}

export function errorText(note: ErrorNote): string {
  if (!latest || !isSame(latest.note, note)) latest = { note, text: JSON.stringify(note) };
  return latest.text;
}

function isSame(one: ErrorNote, other: ErrorNote): boolean {
  if (one === other) return true;
  if (one.causes || other.causes || one.fingerprint !== other.fingerprint) return false;
  const { type, message, code, stack } = one;
  return type === other.type && message === other.message && code === other.code && stack === other.stack;
}
