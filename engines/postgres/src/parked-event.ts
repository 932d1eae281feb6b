import {
  clampMs,
  type EarlierParking,
  type EditNote,
  fingerprintOf,
  type NewlyParked,
  type ParkedEvent,
  type ParkedStatus,
  type ParkedSummary,
} from '@holdfast/contracts';
import { storableText } from './column-values.ts';
import type { Row } from './database.ts';
import { envelopeColumns, envelopeOf, extrasOf, jsonOf, textOf } from './envelope-columns.ts';
import { payloadColumns, payloadOf } from './payload-columns.ts';
import { columnOf } from './publish.ts';
import { parkAgain } from './schema/park-again.ts';

/** The columns of a parked event, in the order in which `parkedOf` reads them. */
export const parkedColumns = `${envelopeColumns}, topic, status, parked_at, parkings, removed_at, operation, reason, message, stop,
  final_attempt, error, story, original, edits, discarded, consumer, replayed_by, version, earlier`;

export const summaryColumns = `id, topic, type, key, tenant, status, parked_at, parkings, operation, reason, message, stop,
  final_attempt, fingerprint, greatest(0, removed_at - {schema}.now_ms()), edits <> '[]', consumer, replayed_by, version`;

export const parkText = `INSERT INTO {schema}.parked (id, status, parked_at, parkings, removed_at, topic, first_seen_at, expires_at,
    bytes_are_text, type, key, tenant, origin, replay, body, bytes, extras, reason, message, stop, final_attempt, fingerprint, error, story,
    consumer)
  SELECT id, 'parked', now, 1, now + ceil(coalesce(keep, $1::double precision))::bigint, topic, first_seen_at, expires_at,
    bytes_are_text, type, key, tenant, origin, replay, body, bytes, extras, reason, left(message, 512), stop, final_attempt,
    fingerprint, error, story, consumer
  FROM {schema}.now_ms() AS n(now), unnest($2::text[], $3::double precision[], $4::text[], $5::bigint[], $6::bigint[], $7::boolean[],
    $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::bytea[], $15::text[], $16::text[], $17::text[],
    $18::text[], $19::int[], $20::text[], $21::text[], $22::text[], $23::text[]) AS g(id, keep, topic, first_seen_at, expires_at, bytes_are_text,
    type, key, tenant, origin, replay, body, bytes, extras, reason, message, stop, final_attempt, fingerprint, error, story,
    consumer)
  ${parkAgain} RETURNING id`;

export function parkValues(events: readonly NewlyParked[]): unknown[] {
  const payloads = events.map(({ payload }) => payloadColumns(payload));
  const of = <T>(read: (event: NewlyParked) => T | null | undefined) => columnOf(events.map(read));
  return [
    of(({ id }) => id),
    of(({ keepMs }) => keepMs && clampMs(keepMs)),
    of(({ topic }) => topic),
    of(({ firstSeenAt }) => Math.floor(firstSeenAt)),
    of(({ expiresAt }) => expiresAt && Math.floor(expiresAt)),
    payloads.map(({ bytesAreText }) => bytesAreText),
    of(({ type }) => type),
    of(({ key }) => key),
    of(({ tenant }) => tenant),
    of(({ originTopic }) => originTopic),
    of(({ replay }) => replay),
    columnOf(payloads.map(({ body }) => body)),
    columnOf(payloads.map(({ bytes }) => bytes)),
    of((event) => extrasOf(event, event.id)),
    of(({ diagnosis }) => storableText(diagnosis.reason)),
    of(({ diagnosis }) => storableText(diagnosis.message)),
    of(({ diagnosis }) => storableText(diagnosis.stop)),
    of(({ diagnosis }) => diagnosis.finalAttempt),
    of((event) => storableText(fingerprintOf(event))),
    of(({ diagnosis }) => diagnosis.error && JSON.stringify(diagnosis.error)),
    of(({ diagnosis }) => JSON.stringify(diagnosis.story)),
    of(({ diagnosis }) => diagnosis.consumer && storableText(diagnosis.consumer)),
  ];
}

export function parkedOf(row: Row): ParkedEvent {
  const [topic, status, parkedAt, parkings, removedAt, operation, reason, message, stop, finalAttempt] =
    row.slice(12);
  const [error, story, original, edits, discarded, consumer, replayedBy, version, earlier] = row.slice(22);
  return {
    ...envelopeOf(row, topic as string),
    diagnosis: {
      reason: reason as string,
      message: message as string,
      stop: stop as string,
      finalAttempt: finalAttempt as number,
      consumer: textOf(consumer),
      error: jsonOf(error),
      story: jsonOf<ParkedEvent['diagnosis']['story']>(story) ?? [],
    },
    status: status as ParkedStatus,
    parkedAt: parkedAt as number,
    parkings: parkings as number,
    removedAt: removedAt as number,
    operation: textOf(operation),
    replayedBy: textOf(replayedBy),
    version: version as number,
    earlier: (earlier as string[]).map(earlierOf),
    original: originalOf(original),
    edits: jsonOf<EditNote[]>(edits) ?? [],
    discarded: jsonOf(discarded),
  };
}

export function summaryOf(row: Row): ParkedSummary {
  return {
    id: row[0] as string,
    topic: row[1] as string,
    type: textOf(row[2]),
    key: textOf(row[3]),
    tenant: textOf(row[4]),
    status: row[5] as ParkedStatus,
    parkedAt: row[6] as number,
    parkings: row[7] as number,
    operation: textOf(row[8]),
    reason: row[9] as string,
    message: row[10] as string,
    stop: row[11] as string,
    finalAttempt: row[12] as number,
    fingerprint: row[13] as string,
    removedInMs: row[14] as number,
    edited: row[15] as boolean,
    consumer: textOf(row[16]),
    replayedBy: textOf(row[17]),
    version: row[18] as number,
  };
}

function earlierOf(text: string): EarlierParking {
  const { consumer, error, replay, ...rest } = JSON.parse(text);
  return {
    ...rest,
    consumer: consumer ?? undefined,
    error: error ?? undefined,
    replay: replay ?? undefined,
  };
}

/** The original payload and headers, stored at the first edit. */
export function originalText({ payload, headers }: NonNullable<ParkedEvent['original']>): string {
  const { body, bytes, bytesAreText } = payloadColumns(payload);
  return JSON.stringify({
    body,
    bytes: bytes && Buffer.from(bytes).toString('base64'),
    bytesAreText,
    headers,
  });
}

function originalOf(text: unknown): ParkedEvent['original'] {
  const stored = jsonOf<{
    body: string | null;
    bytes: string | null;
    bytesAreText: boolean;
    headers: ParkedEvent['headers'];
  }>(text);
  if (!stored) return undefined;
  const bytes = stored.bytes === null ? null : Buffer.from(stored.bytes, 'base64');
  return { payload: payloadOf(stored.body, bytes, stored.bytesAreText), headers: stored.headers };
}
