/** What strangers share when there is no room left for one of their own. */
const strangers = '';

/**
 * Remembers a time for each key, at which it owes nothing any more, in bounded memory. Two generations: when the young one
 * is full it becomes the old one, and of the one before only keys in debt are carried over. A key that owes nothing is the
 * same as one that never came, so nobody gains by making others forgotten. When every place is taken by a debtor, new keys
 * share one.
 */
export class Debts {
  readonly #generationMax: number;
  #young = new Map<string, number>();
  #old = new Map<string, number>();
  /** A turn that freed little is not repeated at once: each costs a look at every key. */
  #turnsFrom = -Infinity;

  /** At most so many keys at once. */
  constructor(keysMax: number) {
    this.#generationMax = Math.max(1, Math.floor(keysMax / 2));
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  get(key: string): number {
    return this.#young.get(key) ?? this.#old.get(key) ?? 0;
  }

  /** The name under which the debts of `key` are kept: its own, or that of all strangers. */
  nameOf(key: string, now: number): string {
    if (this.#young.size < this.#generationMax || this.#young.has(key) || this.#turn(now)) return key;
    // It has a debt already and is not let off it: there it can stay.
    return this.#old.has(key) ? key : strangers;
  }

  /** `name` comes from `nameOf`. */
  set(name: string, until: number): void {
    if (this.#young.size < this.#generationMax || this.#young.has(name)) this.#young.set(name, until);
    else if (this.#old.has(name)) this.#old.set(name, until);
    else this.#young.set(strangers, until);
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }

  /** False: there is no room yet. */
  #turn(now: number): boolean {
    if (now < this.#turnsFrom) return false;
    const carried = new Map<string, number>();
    for (const [key, until] of this.#old) if (until > now && !this.#young.has(key)) carried.set(key, until);
    if (carried.size > this.#generationMax / 2) this.#turnsFrom = now + 1000;
    if (carried.size >= this.#generationMax) return false;
    this.#old = this.#young;
    this.#young = carried;
    return true;
  }
}
