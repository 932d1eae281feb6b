import type { Question } from '../../src/api/routes.ts';

/** The words of a filter, as the API takes them in a query and in the body of an act. */
export type FilterWords = Question<'POST /replays'>['body']['filter'];

/** Words whose values are compared; with a minus in front they exclude. */
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

/** The picks of this value mean all events that match. */
export const everything = '*';

/** What the parking lot shows. All of it is in the URL, so that a link shows the same. */
export interface Lot {
  readonly filter: FilterWords;
  /** The words of the filter one by one, without the status. */
  readonly words: readonly (readonly [name: string, value: string])[];
  readonly status: Status;
  readonly by: Grouping;
  readonly view: 'groups' | 'events';
  readonly picks: readonly string[];
  readonly cursor: string | undefined;
  /** The dialog that is open. */
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

/** The URL with some words replaced; `undefined` removes a word. */
export function withWords(url: string, changes: Words): string {
  const place = new URL(url, location.origin);
  for (const [name, value] of Object.entries(changes)) {
    place.searchParams.delete(name);
    for (const each of [value ?? []].flat()) place.searchParams.append(name, each);
  }
  return place.pathname + place.search;
}

/** The URL with another filter: choices and pages were of the old one. */
export function withFilter(url: string, changes: Words): string {
  return withWords(url, { ...changes, pick: undefined, cursor: undefined, do: undefined });
}

/** The URL without one value of one word. */
export function withoutWord(url: string, name: string, value: string): string {
  const left = new URL(url, location.origin).searchParams.getAll(name).filter((each) => each !== value);
  return withFilter(url, { [name]: left });
}

/** The word by which the groups of a grouping are filtered. */
export function wordOf(by: Grouping): (typeof propertyWords)[number] {
  return by === 'error' ? 'group' : by;
}

/** The filter of what is chosen; `undefined`: nothing is chosen. */
export function chosenFilter({ filter, picks, view, by }: Lot): FilterWords | undefined {
  if (picks.length === 0) return undefined;
  if (picks.includes(everything)) return filter;
  return { ...filter, [view === 'events' ? 'id' : wordOf(by)]: [...picks] };
}
