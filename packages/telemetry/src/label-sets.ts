import { type Label, type Labels, type Metric, OTHER } from './metrics.ts';

/** The labels whose values are not a closed list. */
const open = new Set<Label>(['policy', 'target', 'error_type']);

/** A name is in as many lines of an exposition as there are buckets and states: what a stranger may choose must be short. */
const nameMax = 128;

/** A label set that has a place, and what is kept there. */
export interface LabelSet<T> {
  readonly labels: Labels;
  /** It stands for others. */
  readonly overflowed: boolean;
  readonly kept: T;
}

/**
 * The distinct label sets of one metric, never more than twice `labelSetsMax` and what closed lists can add. When the
 * first half is full, new targets and error types are `other`; when the second is, new policies are, too.
 */
export class LabelSets<T> {
  readonly #names: readonly Label[];
  readonly #max: number;
  readonly #make: (labels: Labels) => T;
  /** A level for each label: names that come again and again are found without making a text of them. */
  readonly #root: Level<T> = new Map();
  #size = 0;

  constructor(metric: Metric, labelSetsMax: number, make: (labels: Labels) => T) {
    this.#names = metric.labels;
    this.#max = labelSetsMax;
    this.#make = make;
  }

  /** The set itself while there is room, or the one that it is counted under. */
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

  /** In the order of their labels, whatever came first. */
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

  /** With other names in the place of those that are open. */
  #replace(labels: Labels, by: (label: Label, name: string | undefined) => string | undefined): Labels {
    return Object.fromEntries(
      this.#names.map((label) => [label, open.has(label) ? by(label, labels[label]) : labels[label]]),
    );
  }
}

/** Halves of characters cannot be written: two names that differ in them would be one there, and one there twice. */
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
