/**
 * The theoretical arrival time (TAT) of one key in the GCRA algorithm. At this time the key has its full limit again.
 */
export interface Tat {
  at: number;
}

/**
 * Stores a TAT (theoretical arrival time of the GCRA algorithm) for each key, in bounded memory. A key with a past TAT
 * has its full limit, so it can be forgotten. If no place is free, new keys share one overflow TAT.
 */
export class BoundedTats {
  readonly #generationMax: number;
  readonly #overflow: Tat = { at: 0 };
  #young = new Map<string, Tat>();
  #old = new Map<string, Tat>();
  /** The earliest time at which `#turn` may run again. It visits every old key, so it must not run too often. */
  #nextTurnAt = -Infinity;

  constructor(keysMax: number) {
    this.#generationMax = Math.max(1, Math.floor(keysMax / 2));
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /**
   * Returns the arrival time (TAT) of `key`. If there is no place for a new key, returns the TAT that all such keys
   * share. The caller must not keep the object.
   */
  of(key: string, now: number): Tat {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    const hasPlace = this.#young.size < this.#generationMax || this.#turn(now);
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
