import type {
  AttemptNote,
  Delivery,
  Envelope,
  ErrorNote,
  Headers,
  Payload,
  Trials,
} from '@holdfast/contracts';

/** The columns of an event as a lease reads them, by position: an object for each row would cost twice as much. */
export const eventColumns = `
  event.seq, event.id, event.payload, event.type, event.key, event.tenant, event.headers, event.correlation_id,
  event.idempotency_key, event.origin_topic, event.first_seen_at, event.expires_at, event.replay, event.lane,
  event.due_at, event.attempts, event.snoozes, event.deaths, event.next_delay_ms, trial.last_error, trial.story`;

export type EventRow = [
  seq: number,
  id: string,
  payload: Payload,
  type: string | null,
  key: string | null,
  tenant: string | null,
  headers: string | null,
  correlationId: string | null,
  idempotencyKey: string | null,
  originTopic: string | null,
  firstSeenAt: number,
  expiresAt: number | null,
  replay: string | null,
  lane: string | null,
  dueAt: number,
  attempts: number,
  snoozes: number,
  deaths: number,
  nextDelayMs: number | null,
  lastError: string | null,
  story: string | null,
];

export const noHeaders: Headers = Object.freeze({});
const noStory: readonly AttemptNote[] = Object.freeze([]);

/** A token says which lease, which event, and whether there is a trial to be forgotten with it. */
export function toToken(n: number, seq: number, hasTrial: boolean): string {
  return hasTrial ? `${n}.${seq}.t` : `${n}.${seq}`;
}

export interface Token {
  readonly n: number;
  readonly seq: number;
  readonly hasTrial: boolean;
}

/** `undefined`: we never gave this one. */
export function fromToken(token: string): Token | undefined {
  const dot = token.indexOf('.');
  if (dot < 0) return undefined;
  const hasTrial = token.endsWith('.t');
  const n = Number(token.slice(0, dot));
  const seq = Number(hasTrial ? token.slice(dot + 1, -2) : token.slice(dot + 1));
  return Number.isSafeInteger(n) && Number.isSafeInteger(seq) ? { n, seq, hasTrial } : undefined;
}

export function toDelivery(row: EventRow, topic: string, n: number, now: number): Delivery {
  const [seq, id, payload, type, key, tenant, headers, correlationId, idempotencyKey, originTopic] = row;
  const [, , , , , , , , , , firstSeenAt, expiresAt, replay, , , attempts, snoozes, deaths] = row;
  const [nextDelayMs, lastError, story] = [row[18], row[19], row[20]];
  return {
    id,
    topic,
    payload,
    type: type ?? undefined,
    key: key ?? undefined,
    tenant: tenant ?? undefined,
    headers: headers === null ? noHeaders : JSON.parse(headers),
    correlationId: correlationId ?? id,
    idempotencyKey: idempotencyKey ?? id,
    originTopic: originTopic ?? topic,
    firstSeenAt,
    expiresAt: expiresAt ?? undefined,
    replay: replay ?? undefined,
    attempts,
    snoozes,
    deaths,
    nextDelayMs: nextDelayMs ?? undefined,
    lastError: lastError === null ? undefined : JSON.parse(lastError),
    story: story === null ? noStory : JSON.parse(story),
    lease: { topic, id, token: toToken(n, seq, story !== null) },
    attempt: attempts + 1,
    patienceLeftMs: expiresAt === null ? Infinity : Math.max(0, expiresAt - now),
    suspect: deaths > 0,
    diagnosis: undefined,
  };
}

/** The same from a row with names, for all but the hot path. */
export function toEnvelope(row: Record<string, unknown>, topic: string): Envelope {
  const id = String(row.id);
  const text = (name: string) => (row[name] as string | null) ?? undefined;
  return {
    id,
    topic,
    payload: row.payload as Payload,
    type: text('type'),
    key: text('key'),
    tenant: text('tenant'),
    headers: row.headers === null ? noHeaders : JSON.parse(String(row.headers)),
    correlationId: text('correlation_id') ?? id,
    idempotencyKey: text('idempotency_key') ?? id,
    originTopic: text('origin_topic') ?? topic,
    firstSeenAt: Number(row.first_seen_at),
    expiresAt: row.expires_at === null ? undefined : Number(row.expires_at),
    replay: text('replay'),
  };
}

export function toTrials(row: Record<string, unknown>): Trials {
  return {
    attempts: Number(row.attempts),
    snoozes: Number(row.snoozes),
    deaths: Number(row.deaths),
    nextDelayMs: row.next_delay_ms === null ? undefined : Number(row.next_delay_ms),
    lastError: row.last_error === null ? undefined : (JSON.parse(String(row.last_error)) as ErrorNote),
    story: row.story === null ? noStory : JSON.parse(String(row.story)),
  };
}
