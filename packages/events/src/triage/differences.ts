import {
  assertFilterNotEmpty,
  type BreakdownBy,
  breakdownProperties,
  type ParkedFilter,
  type Triage,
} from '@holdfast/contracts';

/**
 * A value that is much more frequent among the chosen parked events than among the other parked events of
 * their topics.
 */
export interface Difference {
  readonly by: BreakdownBy;
  readonly value: string | undefined;
  /** Which part of the chosen events has this value, from 0 to 1. */
  readonly share: number;
  /** Which part of the other parked events of the same topics has this value, from 0 to 1. */
  readonly otherShare: number;
  readonly count: number;
}

/** Which headers to compare, and how many differences to return. */
export interface DifferencesOptions {
  /** The names of headers that are also compared. Default: none. */
  readonly headers?: readonly string[];
  /** The most differences that are returned. Default: `10`. */
  readonly limit?: number;
}

const defaultLimit = 10;
/** At most this many values of each property are compared, the most frequent ones. */
const valuesMax = 50;
/** A value is reported only if its two shares differ by at least this much. */
const differenceMin = 0.2;

/**
 * The properties that are compared. `fingerprint` and `reason` are left out, because they are the same for
 * all events of one error, and `status`, because it is part of both filters.
 */
const compared = breakdownProperties.filter(
  (property) => property !== 'fingerprint' && property !== 'status' && property !== 'reason',
);

/**
 * Compares the chosen parked events with all other parked events of the same topics. For example: 97 % of the
 * chosen events are of tenant acme, but only 4 % of the others. The largest difference comes first.
 */
export async function differences(
  triage: Pick<Triage, 'breakdown' | 'count'>,
  filter: ParkedFilter,
  { headers = [], limit = defaultLimit }: DifferencesOptions = {},
): Promise<readonly Difference[]> {
  assertFilterNotEmpty(filter);
  const topics = (await triage.breakdown(filter, 'topic', valuesMax)).items.flatMap(
    ({ value }) => value ?? [],
  );
  const everything: ParkedFilter = { topic: topics, ...(filter.status && { status: filter.status }) };
  const [chosen, all] = [await triage.count(filter), await triage.count(everything)];
  if (chosen === 0 || all <= chosen) return [];
  const found: Difference[] = [];
  for (const by of [...compared, ...headers.map((header) => ({ header }))]) {
    if (filterNames(filter, by)) continue;
    const mine = await triage.breakdown(filter, by, valuesMax);
    const whole = await triage.breakdown(everything, by, valuesMax);
    for (const { value, count } of mine.items) {
      const total = whole.items.find((item) => item.value === value)?.count ?? count;
      const share = count / chosen;
      const otherShare = (total - count) / (all - chosen);
      if (share - otherShare >= differenceMin) found.push({ by, value, share, otherShare, count });
    }
  }
  return found.sort((a, b) => b.share - b.otherShare - (a.share - a.otherShare)).slice(0, limit);
}

/** True: the filter itself selects by this property, so comparing it would say nothing new. */
function filterNames(filter: ParkedFilter, by: BreakdownBy): boolean {
  return typeof by === 'string' && Object.hasOwn(filter, by);
}
