import { OptionsError, subscribe } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { LabelSets } from './label-sets.ts';
import { measuring, type Sink } from './measure.ts';
import { defaultBucketsSeconds, type Labels, type Metric, metricKeys, metrics } from './metrics.ts';
import { readings } from './readings.ts';
import { type Policies, selectionOf } from './selection.ts';

/** The options of `observe`: the bounds of the histograms, and the most label sets. */
export interface ObserveOptions {
  /** The upper bounds of all histogram buckets in seconds, in rising order. Default: from 0.005 to 60. */
  readonly bucketsSeconds?: readonly number[] | undefined;
  /**
   * The most label sets (combinations of label values) of each metric. Further label sets are counted as `other`.
   * Default: `500`.
   */
  readonly labelSetsMax?: number | undefined;
}

const known: Readonly<Record<keyof ObserveOptions, true>> = { bucketsSeconds: true, labelSetsMax: true };

/** The metrics of policies, consumers or server parts. */
export interface Observation {
  /** Returns the current values of all metrics as plain JSON, always in the same order. */
  snapshot(): readonly Family[];
  /**
   * Reads values that take time, for example from a database. The metrics handler waits for it before each
   * `snapshot`.
   */
  refresh?(): Promise<void>;
  /** Stops counting. Counters keep their values, and gauges disappear. */
  stop(): void;
}

/** One metric with the values of all its label sets. */
export interface Family extends Metric {
  readonly samples: readonly Sample[];
}

/** One value of a metric. Histograms have `count` and `buckets`, and `value` is their sum. */
export interface Sample {
  readonly labels: Labels;
  /** The value. For a histogram, it is the sum of all measurements. */
  readonly value: number;
  /** For a histogram: the number of all measurements. */
  readonly count?: number;
  /** For a histogram: for each bucket, the number of measurements that are at most its bound `le`. */
  readonly buckets?: readonly { readonly le: number; readonly count: number }[];
}

export const defaultLabelSetsMax = 500;

/** Starts to count the work of policies. The counts come from the notices (events) that policies report. */
export function observe(policies: Policies, options: ObserveOptions = {}): Observation {
  assertKnownFields(known, options);
  const selection = selectionOf(policies);
  const bounds = checkedBounds(options.bucketsSeconds ?? defaultBucketsSeconds);
  const labelSetsMax = checkedMax(options.labelSetsMax ?? defaultLabelSetsMax);
  const gaugeKeys = metricKeys.filter((key) => metrics[key].type === 'gauge');
  const kept = new Map(metricKeys.map((key) => [key, new Kept(metrics[key], labelSetsMax, bounds)]));
  let stopped = false;

  const sink: Sink = (metric, labels, value) => {
    const overflowed = kept.get(metric)!.measure(labels, value);
    if (overflowed) kept.get('labelOverflows')!.measure({ metric: metrics[metric].name }, 1);
  };
  const measure = measuring(sink);
  const unsubscribe = subscribe((notice) => {
    if (selection(notice.policy)) measure(notice);
  });

  return {
    snapshot() {
      // Compute the gauges anew each time. So when a policy removes a target, the gauges of this target
      // disappear.
      const now = new Map(gaugeKeys.map((key) => [key, new Kept(metrics[key], labelSetsMax, bounds)]));
      for (const { metric, labels, value } of stopped ? [] : readings(selection)) {
        now.get(metric)!.measure(labels, value);
      }
      return metricKeys.map((key) => (now.get(key) ?? kept.get(key)!).family());
    },
    stop() {
      stopped = true;
      unsubscribe();
    },
  };
}

class Kept {
  readonly #metric: Metric;
  readonly #sets: LabelSets<Series>;
  readonly #bounds: readonly number[];

  constructor(metric: Metric, labelSetsMax: number, bounds: readonly number[]) {
    this.#metric = metric;
    this.#bounds = metric.type === 'histogram' ? bounds : [];
    const counts = this.#bounds.length + 1;
    this.#sets = new LabelSets(metric, labelSetsMax, () => ({ sum: 0, counts: new Array(counts).fill(0) }));
  }

  /**
   * Adds a measurement. Returns true if some labels were replaced by `other`, because there are too many
   * label sets.
   */
  measure(labels: Labels, value: number): boolean {
    const { kept, overflowed } = this.#sets.place(labels);
    kept.sum += value;
    let bucket = 0;
    while (bucket < this.#bounds.length && value > this.#bounds[bucket]!) bucket++;
    kept.counts[bucket]!++;
    return overflowed;
  }

  family(): Family {
    const samples = this.#sets.inOrder().map(({ labels, kept }) => this.#sample(labels, kept));
    return { ...this.#metric, samples };
  }

  #sample(labels: Labels, { sum, counts }: Series): Sample {
    if (this.#metric.type !== 'histogram') return { labels, value: sum };
    let count = 0;
    const buckets = this.#bounds.map((le, index) => {
      count += counts[index]!;
      return { le, count };
    });
    return { labels, value: sum, count: count + counts.at(-1)!, buckets };
  }
}

interface Series {
  sum: number;
  /** The number of measurements in each bucket, not cumulative. The last bucket is for values above all bounds. */
  readonly counts: number[];
}

function checkedBounds(bounds: readonly number[]): readonly number[] {
  const rising = Array.isArray(bounds) && bounds.every((each, at) => each > (at > 0 ? bounds[at - 1]! : 0));
  if (!rising || bounds.includes(Infinity)) {
    throw new OptionsError('bucketsSeconds', bounds, 'a rising list of seconds above 0');
  }
  return [...bounds];
}

export function checkedMax(max: number): number {
  if (!Number.isInteger(max) || max < 1) throw new OptionsError('labelSetsMax', max, 'a whole number from 1');
  return max;
}
