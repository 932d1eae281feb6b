import type { KeyEntry } from './storage.ts';

/** How many entries are looked at for each that comes: so those that have outlived their time never pile up. */
const looks = 2;

/** Keys of all scopes, and how many they are. */
export class KeyRing {
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
    if (found.entries.size >= wanted) this.#removeExpired(scope, found, now, Infinity);
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

  /** Removes the scope with all its keys; gives how many they were. */
  deleteScope(scope: string): number {
    const removed = this.#scopes.get(scope)?.entries.size ?? 0;
    this.#scopes.delete(scope);
    this.size -= removed;
    return removed;
  }

  /** Removes at most `limit` keys that have outlived their time; gives how many they were. */
  sweep(now: number, limit: number): number {
    let removed = 0;
    for (const [scope, found] of this.#scopes) {
      if (removed >= limit) break;
      removed += this.#removeExpired(scope, found, now, limit - removed);
    }
    return removed;
  }

  #removeExpired(scope: string, { entries }: Scope, now: number, limit: number): number {
    let removed = 0;
    for (const [key, { removedAt }] of entries) {
      if (removed >= limit) break;
      if (removedAt > now) continue;
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
