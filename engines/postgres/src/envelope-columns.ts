import type { Envelope, Headers, NewEvent } from '@holdfast/contracts';
import type { Row } from './database.ts';
import { payloadOf } from './payload-columns.ts';

/** The columns of an event, in the order in which `envelopeOf` reads them. */
export const envelopeColumns =
  'id, body, bytes, bytes_are_text, type, key, tenant, extras, origin, replay, first_seen_at, expires_at';

interface Extras {
  readonly headers?: Headers;
  readonly correlationId?: string;
  readonly idempotencyKey?: string;
}

const noHeaders: Headers = Object.freeze({});

export function envelopeOf(row: Row, topic: string, from = 0): Envelope {
  const id = row[from] as string;
  const extras = row[from + 7];
  const {
    headers = noHeaders,
    correlationId = id,
    idempotencyKey = id,
  }: Extras = extras === null ? {} : JSON.parse(extras as string);
  return {
    id,
    topic,
    payload: payloadOf(row[from + 1], row[from + 2], row[from + 3]),
    type: textOf(row[from + 4]),
    key: textOf(row[from + 5]),
    tenant: textOf(row[from + 6]),
    headers,
    correlationId,
    idempotencyKey,
    originTopic: textOf(row[from + 8]) ?? topic,
    firstSeenAt: row[from + 10] as number,
    expiresAt: numberOf(row[from + 11]),
    replay: textOf(row[from + 9]),
  };
}

/** Returns optional fields as JSON; `null`: there are none. A field that equals `id` is left out. */
export function extrasOf(
  { headers, correlationId, idempotencyKey }: Pick<NewEvent, 'headers' | 'correlationId' | 'idempotencyKey'>,
  id: string,
): string | null {
  const hasHeaders = headers !== undefined && Object.keys(headers).length > 0;
  const hasCorrelation = correlationId !== undefined && correlationId !== id;
  const hasIdempotency = idempotencyKey !== undefined && idempotencyKey !== id;
  if (!hasHeaders && !hasCorrelation && !hasIdempotency) return null;
  const extras: Extras = {
    ...(hasHeaders && { headers }),
    ...(hasCorrelation && { correlationId }),
    ...(hasIdempotency && { idempotencyKey }),
  };
  return JSON.stringify(extras);
}

export function textOf(value: unknown): string | undefined {
  return value === null ? undefined : (value as string);
}

export function numberOf(value: unknown): number | undefined {
  return value === null ? undefined : (value as number);
}

export function jsonOf<T>(value: unknown): T | undefined {
  return value === null || value === undefined ? undefined : JSON.parse(value as string);
}
