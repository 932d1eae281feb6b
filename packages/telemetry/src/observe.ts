import { OptionsError, subscribe } from 'holdfast';
import { refuseUnknown } from 'holdfast/fields';
import { LabelSets } from './label-sets.ts';
import { measuring, type Sink } from './measure.ts';
import { defaultBucketsSeconds, type Labels, type Metric, metricKeys, metrics } from './metrics.ts';
import { readings } from './readings.ts';
import { type Policies, selectionOf } from './selection.ts';

export interface ObserveOptions {
  /** Upper bounds of all histograms, rising. */
  readonly bucketsSeconds?: readonly number[] | undefined;
  /** Distinct label sets of each metric; what comes after is counted under `other`. */
  readonly labelSetsMax?: number | undefined;
}

const known: Readonly<Record<keyof ObserveOptions, true>> = { bucketsSeconds: true, labelSetsMax: true };

/** What is being kept, of some policies or consumers. */
export interface Observation {
  /** Everything as it stands, gauges read now. Plain JSON, in a stable order. */
  snapshot(): readonly Family[];
  /** Asks for what cannot be read at once; a scrape waits for it. */
  refresh?(): Promise<void>;
  /** Ends the listening: counts stand still and gauges are gone. Core is free of cost again when nobody else hears. */
  stop(): void;
}

/** One metric with all its label sets. */
export interface Family extends Metric {
  readonly samples: readonly Sample[];
}

export interface Sample {
  readonly labels: Labels;
  /** Of a histogram: the sum of all that was measured. */
  readonly value: number;
  /** Of a histogram only: how many measurements, and how many of them up to each bound. */
  readonly count?: number;
  readonly buckets?: readonly { readonly le: number; readonly count: number }[];
}

export const defaultLabelSetsMax = 500;

/** Keeps metrics of what policies do, from their notices. */
export function observe(policies: Policies, options: ObserveOptions = {}): Observation {
  refuseUnknown(known, options);
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
      // Places of their own each time: a target that core has forgotten is not shown for ever.
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

/** One metric as it stands. */
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

  /** Adds to what is there. True where the labels had to give way. */
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
  /** By bucket, not cumulated; the last one is for what is above all bounds. */
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
