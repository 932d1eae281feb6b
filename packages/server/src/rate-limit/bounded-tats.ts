/**
 * The theoretical arrival time (TAT) of a key in the GCRA rate limit algorithm. From this time on, the key
 * has all its tokens again.
 */
export interface Tat {
  at: number;
}

/**
 * Stores a TAT (theoretical arrival time) for each key, in bounded memory. If the memory is full, new keys
 * share one TAT.
 */
export class BoundedTats {
  readonly #generationMax: number;
  readonly #overflow: Tat = { at: 0 };
  #young = new Map<string, Tat>();
  #old = new Map<string, Tat>();
  /** The earliest time of the next `#turn`. It visits every old key, so it must not run often. */
  #nextTurnAt = -Infinity;

  constructor(keysMax: number) {
    this.#generationMax = Math.max(1, Math.floor(keysMax / 2));
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** Returns the TAT of `key`, or the shared TAT if the memory is full. Do not keep the returned object. */
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

  /** Returns the TAT of `key` without adding the key. */
  peek(key: string): number {
    return (this.#young.get(key) ?? this.#old.get(key))?.at ?? 0;
  }

  /**
   * Makes the young keys the old ones, and forgets old keys whose TAT has passed. Returns false if there is
   * no room for new keys.
   */
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
