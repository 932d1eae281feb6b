export type Unit = 'ns' | 'ms' | 'bytes' | 'timers' | 'events/s' | 'steps/s';
export type Better = 'lower' | 'higher';

/** What we promise of a case. */
export type Bar =
  /** `orAddedMax`: or so much on top of the floor, in the unit; where the floor is dear, a ratio says little. */
  | { readonly toFloorMax: number; readonly orAddedMax?: number }
  | { readonly toFloorMin: number }
  | { readonly oursMax: number }
  /** This many times better than the named peer, in the same rounds. */
  | { readonly aheadOf: string; readonly times: number };

export interface Subject {
  readonly case: string;
  readonly unit: Unit;
  readonly better: Better;
  readonly bars?: readonly Bar[];
}

/** One figure a round for each contestant; figures at the same index were taken side by side. */
export interface Samples {
  readonly floor: readonly number[];
  readonly ours: readonly number[];
  readonly peers: Readonly<Record<string, readonly number[]>>;
}

/** A median, where the middle eight tenths of the rounds lie, and where the true median is, 95 times in 100. */
export interface Spread {
  readonly median: number;
  readonly p10: number;
  readonly p90: number;
  readonly ci95: readonly [low: number, high: number];
}

export interface BarResult {
  readonly bar: string;
  readonly value: number;
  readonly met: boolean;
}

export interface CaseResult {
  readonly case: string;
  readonly unit: Unit;
  readonly better: Better;
  /** Medians over the rounds, in the unit. */
  readonly ours: number;
  readonly floor: number;
  readonly peers: Readonly<Record<string, number>>;
  /** Ours ÷ floor: the median of the ratios of each round, which is not quite the ratio of the medians. */
  readonly toFloor: number;
  /** How far we are ahead of the best peer; below 1 we are behind. Null where no peer can do it. */
  readonly toBestPeer: number | null;
  readonly bestPeer: string | null;
  readonly spread: {
    readonly toFloor: Spread;
    readonly toPeers: Readonly<Record<string, Spread>>;
    readonly peersToFloor: Readonly<Record<string, Spread>>;
  };
  readonly rounds: number;
  readonly bars: readonly BarResult[];
}

/** Compares within each round, so that a slow second of the machine slows both sides of a ratio. */
export function compare({ case: name, unit, better, bars = [] }: Subject, samples: Samples): CaseResult {
  const { ours, floor, peers } = samples;
  const toFloor = spreadOf(ratios(ours, floor));
  const toPeers = mapValues(peers, (peer) =>
    spreadOf(better === 'lower' ? ratios(peer, ours) : ratios(ours, peer)),
  );
  const [best] = Object.entries(toPeers).sort(([, a], [, b]) => a.median - b.median);
  const medianOfOurs = spreadOf(ours).median;
  const added = spreadOf(ours.map((value, round) => value - (floor[round] as number))).median;
  return {
    case: name,
    unit,
    better,
    ours: medianOfOurs,
    floor: spreadOf(floor).median,
    peers: mapValues(peers, (peer) => spreadOf(peer).median),
    toFloor: toFloor.median,
    toBestPeer: best === undefined ? null : best[1].median,
    bestPeer: best === undefined ? null : best[0],
    spread: { toFloor, toPeers, peersToFloor: mapValues(peers, (peer) => spreadOf(ratios(peer, floor))) },
    rounds: ours.length,
    bars: bars.map((bar) => judge(bar, medianOfOurs, toFloor.median, added, toPeers)),
  };
}

export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) throw new RangeError('A spread needs at least one value, got none.');
  const sorted = values.toSorted((a, b) => a - b);
  return {
    median: quantile(sorted, 0.5),
    p10: quantile(sorted, 0.1),
    p90: quantile(sorted, 0.9),
    ci95: confidence(sorted),
  };
}

/** By the order of the rounds: how many of them lie below the true median is a matter of coins. Assumes no distribution. */
function confidence(sorted: readonly number[]): [low: number, high: number] {
  const count = sorted.length;
  const reach = 0.98 * Math.sqrt(count);
  const low = Math.max(0, Math.floor(count / 2 - reach));
  return [sorted[low] as number, sorted[count - 1 - low] as number];
}

function judge(
  bar: Bar,
  ours: number,
  toFloor: number,
  added: number,
  toPeers: Record<string, Spread>,
): BarResult {
  if ('toFloorMax' in bar) {
    const { toFloorMax, orAddedMax = Number.NaN } = bar;
    const or = 'orAddedMax' in bar ? `, or at most ${orAddedMax} added (${Math.round(added)} are)` : '';
    const met = toFloor <= toFloorMax || added <= orAddedMax;
    return { bar: `at most ${toFloorMax} × floor${or}`, value: toFloor, met };
  }
  if ('toFloorMin' in bar) {
    return { bar: `at least ${bar.toFloorMin} × floor`, value: toFloor, met: toFloor >= bar.toFloorMin };
  }
  if ('oursMax' in bar) return { bar: `at most ${bar.oursMax}`, value: ours, met: ours <= bar.oursMax };
  const value = toPeers[bar.aheadOf]?.median;
  if (value === undefined)
    throw new RangeError(`A bar names a peer that was measured, got "${bar.aheadOf}".`);
  const wanted = bar.times === 1 ? 'ahead of' : `at least ${bar.times} × ahead of`;
  return { bar: `${wanted} ${bar.aheadOf}`, value, met: bar.times === 1 ? value > 1 : value >= bar.times };
}

function ratios(above: readonly number[], below: readonly number[]): number[] {
  if (above.length !== below.length) {
    throw new RangeError(
      `Ratios need as many rounds on both sides, got ${above.length} and ${below.length}.`,
    );
  }
  return above.map((value, round) => value / (below[round] as number));
}

/** Between two neighbours it lies in proportion, so that a few rounds give a usable figure. */
function quantile(sorted: readonly number[], share: number): number {
  const place = (sorted.length - 1) * share;
  const below = Math.floor(place);
  const low = sorted[below] as number;
  const high = sorted[Math.min(below + 1, sorted.length - 1)] as number;
  return low + (high - low) * (place - below);
}

function mapValues<A, B>(record: Readonly<Record<string, A>>, change: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}
