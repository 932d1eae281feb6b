import { type Label, type Labels, type Metric, OTHER } from './metrics.ts';

/** The labels whose values are not a closed list. */
const open = new Set<Label>(['policy', 'target', 'error_type']);

/** A label set that has a place. */
export interface LabelSet {
  readonly key: string;
  readonly labels: Labels;
  readonly overflowed: boolean;
}

/**
 * The distinct label sets of one metric, never more than twice `labelSetsMax` and what closed lists can add. When the
 * first half is full, new targets and error types are `other`; when the second is, new policies are, too.
 */
export class LabelSets {
  readonly #names: readonly Label[];
  readonly #max: number;
  readonly #sets = new Map<string, LabelSet>();

  constructor(metric: Metric, labelSetsMax: number) {
    this.#names = metric.labels;
    this.#max = labelSetsMax;
  }

  /** The set itself while there is room, or the one that it is counted under. */
  place(labels: Labels): LabelSet {
    const key = this.#keyOf(labels);
    const known = this.#sets.get(key);
    if (known) return known;
    if (this.#sets.size < this.#max) return this.#add(key, labels, false);
    const coarse = this.#replace(labels, (label) => label !== 'policy');
    const coarseKey = this.#keyOf(coarse);
    const shared = this.#sets.get(coarseKey);
    if (shared) return shared;
    if (this.#sets.size < 2 * this.#max) return this.#add(coarseKey, coarse, true);
    const coarsest = this.#replace(labels, () => true);
    const coarsestKey = this.#keyOf(coarsest);
    return this.#sets.get(coarsestKey) ?? this.#add(coarsestKey, coarsest, true);
  }

  #add(key: string, labels: Labels, overflowed: boolean): LabelSet {
    const set = { key, labels, overflowed };
    this.#sets.set(key, set);
    return set;
  }

  #replace(labels: Labels, which: (label: Label) => boolean): Labels {
    return Object.fromEntries(
      this.#names.map((name) => [name, open.has(name) && which(name) ? OTHER : labels[name]]),
    );
  }

  /** A name may hold any character, so each part says how long it is. */
  #keyOf(labels: Labels): string {
    let key = '';
    for (const name of this.#names) {
      const value = labels[name];
      key += value === undefined ? '-' : `${value.length}:${value}`;
    }
    return key;
  }
}
