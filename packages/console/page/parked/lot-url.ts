import type { Question } from '../../src/api/routes.ts';

/** The fields of a filter, as the API expects them. */
export type FilterWords = Question<'POST /replays'>['body']['filter'];

/** Filter fields that compare a property of events. A minus before the name excludes events. */
export const propertyWords = [
  'topic',
  'type',
  'key',
  'tenant',
  'reason',
  'stop',
  'group',
  'consumer',
  'header',
] as const;

const otherWords = ['id', 'replayedBy', 'from', 'to', 'text'] as const;

export const statuses = ['parked', 'replaying', 'resolved', 'discarded'] as const;
export type Status = (typeof statuses)[number];

export const groupings = ['error', 'tenant', 'topic', 'type', 'stop', 'consumer'] as const;
export type Grouping = (typeof groupings)[number];

/** If `picks` contains this value, all events that match the filter are selected. */
export const everything = '*';

/** The state of the list of parked events. It is stored in the URL, so that a link shows the same. */
export interface Lot {
  readonly filter: FilterWords;
  /** The fields of the filter one by one, without the status. */
  readonly words: readonly (readonly [name: string, value: string])[];
  readonly status: Status;
  readonly by: Grouping;
  readonly view: 'groups' | 'events';
  readonly picks: readonly string[];
  readonly cursor: string | undefined;
  readonly dialog: string | undefined;
}

export function lotOf(url: string): Lot {
  const query = new URL(url, location.origin).searchParams;
  const names: readonly string[] = [
    ...propertyWords,
    ...propertyWords.map((name) => `-${name}`),
    ...otherWords,
  ];
  const words = [...query].filter(([name]) => names.includes(name));
  const filter: Record<string, string | string[]> = {};
  for (const [name, value] of words) {
    const isSingle = ['replayedBy', 'from', 'to', 'text'].includes(name);
    filter[name] = isSingle ? value : [...(filter[name] ?? []), value];
  }
  const status = statuses.find((each) => each === query.get('status')) ?? 'parked';
  if (status !== 'parked') filter.status = [status];
  return {
    filter: filter as FilterWords,
    ...{ words, status, picks: query.getAll('pick') },
    by: groupings.find((each) => each === query.get('by')) ?? 'error',
    view: query.get('view') === 'events' ? 'events' : 'groups',
    cursor: query.get('cursor') ?? undefined,
    dialog: query.get('do') ?? undefined,
  };
}

type Words = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The value `undefined` removes a query parameter. */
export function withWords(url: string, changes: Words): string {
  const place = new URL(url, location.origin);
  for (const [name, value] of Object.entries(changes)) {
    place.searchParams.delete(name);
    for (const each of [value ?? []].flat()) place.searchParams.append(name, each);
  }
  return place.pathname + place.search;
}

/**
 * Changes the filter in the URL. The selection and the page are removed, because they belong to the old
 * filter.
 */
export function withFilter(url: string, changes: Words): string {
  return withWords(url, { ...changes, pick: undefined, cursor: undefined, do: undefined });
}

export function withoutWord(url: string, name: string, value: string): string {
  const left = new URL(url, location.origin).searchParams.getAll(name).filter((each) => each !== value);
  return withFilter(url, { [name]: left });
}

/** The filter field that selects one group. */
export function wordOf(by: Grouping): (typeof propertyWords)[number] {
  return by === 'error' ? 'group' : by;
}

/** Returns a filter for the selected events; `undefined`: nothing is selected. */
export function chosenFilter({ filter, picks, view, by }: Lot): FilterWords | undefined {
  if (picks.length === 0) return undefined;
  if (picks.includes(everything)) return filter;
  return { ...filter, [view === 'events' ? 'id' : wordOf(by)]: [...picks] };
}
