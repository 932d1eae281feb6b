import {
  type AttemptRecord,
  type AttemptState,
  clampMs,
  type Diagnosis,
  type Envelope,
  type ErrorNote,
  type Headers,
  type NewEvent,
  type Payload,
} from '@holdfast/contracts';
import { originOf } from './topic-keys.ts';

/** Fields that few events have. The names are short, because they are stored with each event. */
interface Rare {
  /** Type. */
  t?: string;
  h?: Headers;
  /** Correlation id. */
  c?: string;
  /** Idempotency key. */
  i?: string;
  /** Origin topic, and the time of the first publish (`f`), if the event was published before. */
  o?: string;
  f?: number;
  /** How long the result is useful. `p`: in ms from the publish. `x`: the end time instead, epoch ms. */
  p?: number;
  x?: number;
  /** 1: the payload is binary, and stored as base64. */
  b?: 1;
}

/**
 * Returns an event in the form that the scripts store. Its parts are separated by NUL: time of the publish,
 * key, tenant, the fields of `Rare` as JSON, and payload. The time is empty here, because the scripts read it
 * from the sequence number.
 */
export function bodyOf(event: NewEvent, expiresAt?: number): string {
  const { key = '', tenant = '', payload, past } = event;
  const rare: Rare = {};
  if (event.type !== undefined) rare.t = event.type;
  if (event.headers !== undefined) rare.h = event.headers;
  if (event.correlationId !== undefined) rare.c = event.correlationId;
  if (event.idempotencyKey !== undefined) rare.i = event.idempotencyKey;
  if (event.patienceMs !== undefined) rare.p = clampMs(event.patienceMs);
  if (expiresAt !== undefined) rare.x = expiresAt;
  if (past) {
    rare.o = past.originTopic;
    rare.f = past.firstSeenAt;
  }
  if (typeof payload !== 'string') rare.b = 1;
  const text = typeof payload === 'string' ? payload : Buffer.from(payload).toString('base64');
  const json = JSON.stringify(rare);
  return `\0${key}\0${tenant}\0${json === '{}' ? '' : json}\0${text}`;
}

/** The JSON that the script `publish` needs in addition to the body; empty for most events. */
export function extraOf({ delayMs, dueAt, past }: NewEvent): string {
  const { moved, replay } = past ?? {};
  const extra = {
    ...(delayMs !== undefined && { d: clampMs(delayMs) }),
    ...(dueAt !== undefined && { a: clampMs(dueAt) }),
    ...(replay !== undefined && { r: replay }),
    ...(moved !== undefined && { t: triesText(moved) }),
    ...(moved?.holdsKey === false && { f: 1 }),
    ...(moved?.blocking === true && { b: 1 }),
  };
  const json = JSON.stringify(extra);
  return json === '{}' ? '' : json;
}

export function triesText({
  attempts = 0,
  snoozes = 0,
  nextDelayMs,
  lastError,
  story = [],
}: Partial<AttemptState>): string {
  const error = lastError ? JSON.stringify(lastError) : '';
  const records = story.length > 0 ? JSON.stringify(story) : '';
  const next = nextDelayMs === undefined ? '' : clampMs(nextDelayMs);
  return [attempts, snoozes, 0, next, 0, '', error, records, ''].join('\n');
}

/**
 * Reads an event that a script has stored. `replay` is stored separately, because a replay can also start to
 * track an event that is already in the topic.
 */
export function envelopeOf(
  id: string,
  sequence: string,
  topic: string,
  stored: string,
  replay: string | undefined,
  isParked: boolean,
): Envelope {
  const keyAt = stored.indexOf('\0') + 1;
  const tenantAt = stored.indexOf('\0', keyAt) + 1;
  const rareAt = stored.indexOf('\0', tenantAt) + 1;
  const payloadAt = stored.indexOf('\0', rareAt) + 1;
  const publishedAt = keyAt > 1 ? Number(stored.slice(0, keyAt - 1)) : Math.floor(Number(sequence) / 1024);
  const rare: Rare = payloadAt - rareAt > 1 ? JSON.parse(stored.slice(rareAt, payloadAt - 1)) : none;
  const text = stored.slice(payloadAt);
  const payload: Payload = rare.b ? Buffer.from(text, 'base64') : text;
  return {
    id,
    topic,
    payload,
    type: rare.t,
    key: tenantAt - keyAt > 1 ? stored.slice(keyAt, tenantAt - 1) : undefined,
    tenant: rareAt - tenantAt > 1 ? stored.slice(tenantAt, rareAt - 1) : undefined,
    headers: rare.h ?? {},
    correlationId: rare.c ?? id,
    idempotencyKey: rare.i ?? id,
    originTopic: rare.o ?? (isParked ? originOf(topic) : topic),
    firstSeenAt: rare.f ?? publishedAt,
    expiresAt: rare.x ?? (rare.p === undefined ? undefined : publishedAt + rare.p),
    replay,
  };
}

const none: Rare = {};

export interface Tries extends AttemptState {
  readonly suspect: boolean;
  readonly diagnosis: Diagnosis | undefined;
}

const neverTried: Tries = {
  attempts: 0,
  snoozes: 0,
  deaths: 0,
  nextDelayMs: undefined,
  lastError: undefined,
  story: [],
  suspect: false,
  diagnosis: undefined,
};

export function triesOf(stored: string | null | undefined): Tries {
  if (!stored) return neverTried;
  const [attempts, snoozes, deaths, next, suspect, finalAttempt, error, story, diagnosis] =
    stored.split('\n');
  return {
    attempts: Number(attempts),
    snoozes: Number(snoozes),
    deaths: Number(deaths),
    nextDelayMs: next === '' ? undefined : Number(next),
    lastError: error ? (JSON.parse(error) as ErrorNote) : undefined,
    story: story ? (JSON.parse(story) as AttemptRecord[]) : [],
    suspect: suspect === '1',
    diagnosis: diagnosis
      ? ({
          consumer: undefined,
          error: undefined,
          ...JSON.parse(diagnosis),
          finalAttempt: Number(finalAttempt),
        } as Diagnosis)
      : undefined,
  };
}
