import type { KeyEntry } from './storage.ts';

/** How many entries are looked at for each that comes: so those that have outlived their time never pile up. */
const looks = 2;

/** Keys of all scopes, and how many they are. */
export class KeyStore {
  /** Of all scopes. */
  size = 0;
  readonly #scopes = new Map<string, Scope>();

  get(scope: string, key: string): KeyEntry | undefined {
    return this.#scopes.get(scope)?.entries.get(key);
  }

  /** How many keys a scope has that are still wanted, once `wanted` of them have been seen to be too many. */
  sizeOf(scope: string, wanted: number, now: number): number {
    const found = this.#scopes.get(scope);
    if (!found) return 0;
    if (found.entries.size >= wanted) this.remove(scope, ({ removedAt }) => removedAt <= now, Infinity);
    return found.entries.size;
  }

  add(scope: string, key: string, entry: KeyEntry, now: number): void {
    let found = this.#scopes.get(scope);
    if (!found) {
      found = new Scope();
      this.#scopes.set(scope, found);
    }
    if (!found.entries.has(key)) this.size++;
    found.entries.set(key, entry);
    this.size -= found.turn(now, looks);
  }

  delete(scope: string, key: string): boolean {
    const found = this.#scopes.get(scope);
    if (!found?.entries.delete(key)) return false;
    this.size--;
    if (found.entries.size === 0) this.#scopes.delete(scope);
    return true;
  }

  /** Removes at most `limit` keys that have outlived their time; gives how many they were. */
  sweep(now: number, limit: number): number {
    let removed = 0;
    for (const scope of this.#scopes.keys()) {
      if (removed >= limit) break;
      removed += this.remove(scope, ({ removedAt }) => removedAt <= now, limit - removed);
    }
    return removed;
  }

  /** Removes at most `limit` keys of a scope; gives how many they were. */
  remove(scope: string, isUnwanted: (entry: KeyEntry) => boolean, limit: number): number {
    const entries = this.#scopes.get(scope)?.entries;
    if (!entries) return 0;
    let removed = 0;
    for (const [key, entry] of entries) {
      if (removed >= limit) break;
      if (!isUnwanted(entry)) continue;
      entries.delete(key);
      removed++;
    }
    this.size -= removed;
    if (entries.size === 0) this.#scopes.delete(scope);
    return removed;
  }
}

class Scope {
  readonly entries = new Map<string, KeyEntry>();
  /** A hand that goes round and round, whatever comes and goes meanwhile. */
  #hand: Iterator<[string, KeyEntry]> = this.entries.entries();

  /** Moves the hand, and removes what has outlived its time; gives how many those were. */
  turn(now: number, steps: number): number {
    let removed = 0;
    for (let step = 0; step < steps; step++) {
      const { value } = this.#hand.next();
      if (!value) {
        this.#hand = this.entries.entries();
        return removed;
      }
      if (value[1].removedAt > now) continue;
      this.entries.delete(value[0]);
      removed++;
    }
    return removed;
  }
}
