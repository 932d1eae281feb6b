/** What one key owes, and until when. */
export interface Debt {
  until: number;
}

/**
 * Remembers a time for each key, at which it owes nothing any more, in bounded memory. Two generations: when the young one
 * is full it becomes the old one, and of the one before only keys in debt are carried over. A key that owes nothing is the
 * same as one that never came, so nobody gains by making others forgotten. When every place is taken by a debtor, new keys
 * share one debt.
 */
export class BoundedTats {
  readonly #generationMax: number;
  readonly #ofStrangers: Debt = { until: 0 };
  #young = new Map<string, Debt>();
  #old = new Map<string, Debt>();
  /** A turn that freed little is not repeated at once: each costs a look at every key. */
  #turnsFrom = -Infinity;

  /** At most so many keys at once. */
  constructor(keysMax: number) {
    this.#generationMax = Math.max(1, Math.floor(keysMax / 2));
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** The debt of `key`, to be changed in place at once; that of all strangers where there is no room for another. */
  of(key: string, now: number): Debt {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    const hasRoom = this.#young.size < this.#generationMax || this.#turn(now);
    // Who has a debt already is not let off it: it can stay where it is.
    if (!hasRoom) return old ?? this.#ofStrangers;
    const debt = old ?? { until: 0 };
    this.#young.set(key, debt);
    if (old) this.#old.delete(key);
    return debt;
  }

  /** Until when `key` owes something; 0 where nobody remembers. */
  untilOf(key: string): number {
    return (this.#young.get(key) ?? this.#old.get(key))?.until ?? 0;
  }

  /** False: there is no room yet. */
  #turn(now: number): boolean {
    if (now < this.#turnsFrom) return false;
    const carried = new Map<string, Debt>();
    for (const [key, debt] of this.#old) if (debt.until > now) carried.set(key, debt);
    if (carried.size > this.#generationMax / 2) this.#turnsFrom = now + 1000;
    if (carried.size >= this.#generationMax) return false;
    this.#old = this.#young;
    this.#young = carried;
    return true;
  }
}
