import { checkEvents, type NewEvent, type Published, type SizeLimits } from '@holdfast/contracts';
import { OptionsError } from 'holdfast';
import type { Row } from './database.ts';
import { extrasOf } from './envelope-columns.ts';
import { payloadColumns } from './payload-columns.ts';

export const publishText =
  'SELECT duplicates, asleep FROM {schema}.publish($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)';

/** A batch of events as the columns that `publish` takes. */
export interface Publication {
  readonly ids: readonly string[];
  readonly values: readonly unknown[];
}

export function publicationOf(
  topic: string,
  events: readonly NewEvent[],
  limits: SizeLimits,
  newId: () => string,
): Publication {
  checkEvents(events, limits);
  for (const [index, event] of events.entries()) checkCharacters(event, `events[${index}]`);
  const ids = events.map(({ id }) => id ?? newId());
  const payloads = events.map(({ payload }) => payloadColumns(payload));
  const column = <T>(of: (event: NewEvent, index: number) => T | null | undefined) =>
    columnOf(events.map(of));
  return {
    ids,
    values: [
      topic,
      ids,
      columnOf(payloads.map(({ body }) => body)),
      columnOf(payloads.map(({ bytes }) => bytes)),
      columnOf(payloads.map(({ bytesAreText }) => bytesAreText || null)),
      column(({ type }) => type),
      column(({ key }) => key),
      column(({ tenant }) => tenant),
      column((event, index) => extrasOf({ ...event, id: ids[index]! })),
      column(({ past }) => (past && past.originTopic !== topic ? past.originTopic : null)),
      column(({ past }) => past && Math.floor(past.firstSeenAt)),
      column(({ past }) => past?.replay),
      column(({ delayMs }) => delayMs || null),
      column(({ dueAt }) => dueAt),
      column(({ patienceMs }) => patienceMs),
    ],
  };
}

export function publishedOf({ ids }: Publication, [row]: readonly Row[]): Published[] {
  const duplicates = new Set((row?.[0] as number[] | null) ?? []);
  return ids.map((id, index) => ({ id, duplicate: duplicates.has(index + 1) }));
}

/** A column in which nobody says anything is sent as one null. */
export function columnOf<T>(
  values: readonly (T | null | undefined)[],
): readonly (T | null | undefined)[] | null {
  return values.some((value) => value !== null && value !== undefined) ? values : null;
}

function checkCharacters(event: NewEvent, path: string): void {
  for (const name of ['id', 'key', 'tenant', 'type'] as const) {
    if (event[name]?.includes('\0'))
      throw new OptionsError(`${path}.${name}`, event[name], 'a text without NUL');
  }
}
