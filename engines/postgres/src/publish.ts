import { assertEvents, clampMs, type NewEvent, type Published, type SizeLimits } from '@holdfast/contracts';
import { storableJson } from './column-values.ts';
import type { Row } from './database.ts';
import { extrasOf } from './envelope-columns.ts';
import { payloadColumns } from './payload-columns.ts';

export const publishText =
  'SELECT duplicates, asleep FROM {schema}.publish($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)';

export const publishMovedText =
  'SELECT duplicates, asleep FROM {schema}.publish_moved($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)';
export const publishBehindText =
  'SELECT behind, asleep FROM {schema}.publish_behind($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)';

/** A batch of events as arguments of the SQL function `publish`: one array per column. */
export interface Publication {
  readonly ids: readonly string[];
  readonly values: readonly unknown[];
  /** For events that have moved here from another engine; `null`: there are none. */
  readonly moved: readonly (string | null | undefined)[] | null;
}

/** The columns after the ids. A column is sent only if at least one event has a value for it. */
const columns = [
  ...([
    'body',
    'bytes',
    'bytesAreText',
    'type',
    'key',
    'tenant',
    'extras',
    'origin',
    'firstSeenAt',
    'replay',
  ] as const),
  ...(['delayMs', 'dueAt', 'patienceMs'] as const),
];
type Column = (typeof columns)[number];

export function publicationOf(
  topic: string,
  events: readonly NewEvent[],
  limits: SizeLimits,
  newId: () => string,
): Publication {
  assertEvents(events, limits);
  const ids: string[] = [];
  const filled: Partial<Record<Column, unknown[]>> = {};
  const put = (column: Column, value: unknown) => {
    if (value === undefined || value === null || value === false) return;
    const values = filled[column] ?? Array.from(events, () => null);
    filled[column] = values;
    values[ids.length] = value;
  };
  for (const event of events) {
    const { payload, past, delayMs, dueAt, patienceMs } = event;
    const { body, bytes, bytesAreText } = payloadColumns(payload);
    const id = event.id ?? newId();
    put('body', body);
    put('bytes', bytes);
    put('bytesAreText', bytesAreText);
    put('type', event.type);
    put('key', past?.moved?.holdsKey === false ? undefined : event.key);
    put('tenant', event.tenant);
    put('extras', extrasOf(event, id));
    put('origin', past?.originTopic === topic ? undefined : past?.originTopic);
    put('firstSeenAt', past && Math.floor(clampMs(past.firstSeenAt)));
    put('replay', past?.replay);
    put('delayMs', delayMs ? clampMs(delayMs) : undefined);
    put('dueAt', dueAt === undefined ? undefined : clampMs(dueAt));
    put('patienceMs', patienceMs === undefined ? undefined : clampMs(patienceMs));
    ids.push(id);
  }
  const moved = columnOf(events.map(movedColumn));
  return { ids, values: [topic, ids, ...columns.map((column) => filled[column] ?? null)], moved };
}

function movedColumn({ key, past }: NewEvent): string | null {
  if (past?.moved === undefined) return null;
  const {
    attempts = 0,
    snoozes = 0,
    nextDelayMs = null,
    lastError,
    story = [],
    blocking = false,
  } = past.moved;
  const error = lastError ? storableJson(lastError) : null;
  const attemptsMade = story.length > 0 ? storableJson(story) : null;
  return JSON.stringify([attempts, snoozes, nextDelayMs, error, attemptsMade, blocking, key ?? null]);
}

export function publishedOf({ ids }: Publication, [row]: readonly Row[]): Published[] {
  const duplicates = new Set((row?.[0] as number[] | null) ?? []);
  return ids.map((id, index) => ({ id, duplicate: duplicates.has(index + 1) }));
}

export function columnOf<T>(
  values: readonly (T | null | undefined)[],
): readonly (T | null | undefined)[] | null {
  return values.some((value) => value !== null && value !== undefined) ? values : null;
}
