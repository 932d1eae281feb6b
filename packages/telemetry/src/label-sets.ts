import { type Label, type Labels, type Metric, OTHER } from './metrics.ts';

/**
 * The labels whose values come from users or servers. Nothing else limits how many different values they
 * have.
 */
const open = new Set<Label>(['policy', 'target', 'error_type']);

/**
 * The most characters of a label value; longer values are cut. Users may choose the values, and each value is
 * written many times.
 */
const nameMax = 128;

/** A combination of label values, and the data that is stored for it. */
export interface LabelSet<T> {
  readonly labels: Labels;
  /** True: this label set has the value `other` and stands for several label sets. */
  readonly overflowed: boolean;
  readonly kept: T;
}

/**
 * The label sets of one metric. Their number is limited. From `labelSetsMax` sets on, new targets and error
 * types are counted as `other`. From twice that number on, new policies are counted as `other`, too.
 */
export class LabelSets<T> {
  readonly #names: readonly Label[];
  readonly #max: number;
  readonly #make: (labels: Labels) => T;
  /** A tree with one level for each label. It finds a known label set without building a string. */
  readonly #root: Level<T> = new Map();
  #size = 0;

  constructor(metric: Metric, labelSetsMax: number, make: (labels: Labels) => T) {
    this.#names = metric.labels;
    this.#max = labelSetsMax;
    this.#make = make;
  }

  /** Finds or adds a label set. If there are too many, returns a shared label set with the value `other`. */
  place(given: Labels): LabelSet<T> {
    const known = this.#find(given);
    if (known) return known;
    const labels = this.#replace(given, (_label, value) => (value === undefined ? value : writable(value)));
    const written = this.#find(labels);
    if (written) return written;
    if (this.#size < this.#max) return this.#add(labels, false);
    const coarse = this.#replace(labels, (label, value) => (label === 'policy' ? value : OTHER));
    const shared = this.#find(coarse);
    if (shared) return shared;
    if (this.#size < 2 * this.#max) return this.#add(coarse, true);
    const coarsest = this.#replace(labels, () => OTHER);
    return this.#find(coarsest) ?? this.#add(coarsest, true);
  }

  inOrder(): LabelSet<T>[] {
    return [...leaves(this.#root, this.#names.length)];
  }

  #find(labels: Labels): LabelSet<T> | undefined {
    let level: Level<T> | LabelSet<T> | undefined = this.#root;
    for (const name of this.#names) level = (level as Level<T> | undefined)?.get(labels[name]);
    return level as LabelSet<T> | undefined;
  }

  #add(labels: Labels, overflowed: boolean): LabelSet<T> {
    let level = this.#root;
    for (const name of this.#names.slice(0, -1)) {
      const next = (level.get(labels[name]) as Level<T> | undefined) ?? new Map();
      level.set(labels[name], next);
      level = next;
    }
    const set = { labels, overflowed, kept: this.#make(labels) };
    level.set(labels[this.#names.at(-1)!], set);
    this.#size++;
    return set;
  }

  /** Replaces the values of the labels that are in the set `open`. Other labels stay. */
  #replace(labels: Labels, by: (label: Label, name: string | undefined) => string | undefined): Labels {
    return Object.fromEntries(
      this.#names.map((label) => [label, open.has(label) ? by(label, labels[label]) : labels[label]]),
    );
  }
}

/** Cuts a label value and replaces lone surrogates, which UTF-8 cannot encode. */
function writable(name: string): string {
  return name.slice(0, nameMax).replace(/\p{Surrogate}/gu, '\ufffd');
}

type Level<T> = Map<string | undefined, Level<T> | LabelSet<T>>;

function* leaves<T>(level: Level<T>, depth: number): Generator<LabelSet<T>> {
  const entries = [...level].sort(([a = ''], [b = '']) => (a < b ? -1 : Number(a > b)));
  for (const [, next] of entries) {
    if (depth > 1) yield* leaves(next as Level<T>, depth - 1);
    else yield next as LabelSet<T>;
  }
}
