/**
 * The theoretical arrival time (TAT) of one key in the GCRA algorithm: the time at which everything that the key has
 * used is available again. 0 means that the key was never used.
 */
export interface Tat {
  at: number;
}

/**
 * Stores a theoretical arrival time (TAT) for each key, in bounded memory. There are two generations of keys. When the
 * young generation is full, it becomes the old one; of the previous old keys, only those with a TAT in the future are
 * moved into the new young generation.
 *
 * A key whose TAT has passed has its full limit, like an unknown key, so it can be forgotten: a caller gains nothing by
 * filling the memory with other keys. If all places are taken by keys with a TAT in the future, new keys share one
 * overflow TAT.
 */
export class BoundedTats {
  readonly #generationMax: number;
  readonly #overflow: Tat = { at: 0 };
  #young = new Map<string, Tat>();
  #old = new Map<string, Tat>();
  /**
   * The earliest time of the next change of generations. A change visits every old key, so after a change that freed
   * few places, the next change comes at least one second later.
   */
  #nextTurnAt = -Infinity;

  constructor(keysMax: number) {
    this.#generationMax = Math.max(1, Math.floor(keysMax / 2));
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /**
   * Returns the TAT of `key`. The caller may change the object in place, but must not keep it. If there is no place for
   * a new key, returns the shared overflow TAT.
   */
  of(key: string, now: number): Tat {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    const hasPlace = this.#young.size < this.#generationMax || this.#turn(now);
    // A known key keeps its own TAT and stays in the old generation.
    if (!hasPlace) return old ?? this.#overflow;
    const tat = old ?? { at: 0 };
    this.#young.set(key, tat);
    if (old) this.#old.delete(key);
    return tat;
  }

  /** Returns the TAT of `key` without adding the key; 0 if it is unknown. */
  peek(key: string): number {
    return (this.#young.get(key) ?? this.#old.get(key))?.at ?? 0;
  }

  /** Makes the young generation the old one. Returns false if this does not free a place yet. */
  #turn(now: number): boolean {
    if (now < this.#nextTurnAt) return false;
    const carried = new Map<string, Tat>();
    for (const [key, tat] of this.#old) if (tat.at > now) carried.set(key, tat);
    if (carried.size > this.#generationMax / 2) this.#nextTurnAt = now + 1000;
    if (carried.size >= this.#generationMax) return false;
    this.#old = this.#young;
    this.#young = carried;
    return true;
  }
}
