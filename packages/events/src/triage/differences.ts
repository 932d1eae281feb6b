import {
  assertFilterNotEmpty,
  type BreakdownBy,
  breakdownProperties,
  type ParkedFilter,
  type Triage,
} from '@holdfast/contracts';

/** A value that is much more frequent among the chosen events than among the others of their topics. */
export interface Difference {
  readonly by: BreakdownBy;
  readonly value: string | undefined;
  /** The share of the chosen events that have this value, 0–1. */
  readonly share: number;
  /** The share of the other events of the same topics that have this value, 0–1. */
  readonly otherShare: number;
  readonly count: number;
}

/** Which headers to compare, and how many differences to return. */
export interface DifferencesOptions {
  /** Headers that are compared, too. Default: none. */
  readonly headers?: readonly string[];
  /** The most differences that are returned. Default: `10`. */
  readonly limit?: number;
}

const defaultLimit = 10;
/** How many values of a property are compared. */
const valuesMax = 50;
/** A smaller difference between the two shares is not reported. */
const differenceMin = 0.2;

/** Properties that a group of errors has by definition are not compared. */
const compared = breakdownProperties.filter(
  (property) => property !== 'fingerprint' && property !== 'status' && property !== 'reason',
);

/**
 * Compares parked events with all other parked events of the same topics: "97 % of these are of tenant acme, and 4 %
 * of the others". The largest difference comes first.
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

/** True: the filter itself asks for one value of this property, so all chosen events have it. */
function filterNames(filter: ParkedFilter, by: BreakdownBy): boolean {
  return typeof by === 'string' && Object.hasOwn(filter, by);
}
