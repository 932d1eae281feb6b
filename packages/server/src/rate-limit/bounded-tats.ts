/** The theoretical arrival time of one key: up to this time it has used its limit; 0 for a key that was never used. */
export interface Tat {
  at: number;
}

/**
 * A theoretical arrival time (TAT) for each key, in bounded memory. There are two generations: when the young one is full it
 * becomes the old one, and of the previous old one only keys whose TAT is in the future are carried over. A key whose TAT
 * has passed is the same as an unknown key, so a caller gains nothing by pushing other keys out. When all places are taken
 * by keys with a future TAT, new keys share one overflow TAT.
 */
export class BoundedTats {
  readonly #generationMax: number;
  readonly #overflow: Tat = { at: 0 };
  #young = new Map<string, Tat>();
  #old = new Map<string, Tat>();
  /** After a change of generations that freed little the next one has to wait, because it visits every old key. */
  #nextTurnAt = -Infinity;

  constructor(keysMax: number) {
    this.#generationMax = Math.max(1, Math.floor(keysMax / 2));
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** The TAT of `key`, to be changed in place at once; the overflow TAT where there is no place for another key. */
  of(key: string, now: number): Tat {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    const hasPlace = this.#young.size < this.#generationMax || this.#turn(now);
    // A known key keeps its own TAT, in the old generation.
    if (!hasPlace) return old ?? this.#overflow;
    const tat = old ?? { at: 0 };
    this.#young.set(key, tat);
    if (old) this.#old.delete(key);
    return tat;
  }

  /** The TAT of `key` without adding it; 0 for an unknown key. */
  peek(key: string): number {
    return (this.#young.get(key) ?? this.#old.get(key))?.at ?? 0;
  }

  /** Makes the young generation the old one. False: there is no place yet. */
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
