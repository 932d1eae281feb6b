import type { KeyEntry } from './storage.ts';

/** Each added key checks 2 old keys, so expired keys are removed faster than new keys are added. */
const checksPerAdd = 2;

export class KeyStore {
  size = 0;
  readonly #scopes = new Map<string, Scope>();

  get(scope: string, key: string): KeyEntry | undefined {
    return this.#scopes.get(scope)?.entries.get(key);
  }

  /** Returns how many keys a scope has. Expired keys are removed first if there are `max` or more. */
  sizeOf(scope: string, max: number, now: number): number {
    const found = this.#scopes.get(scope);
    if (!found) return 0;
    if (found.entries.size >= max) this.remove(scope, ({ removedAt }) => removedAt <= now, Infinity);
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
    this.size -= found.removeSomeExpired(now, checksPerAdd);
  }

  delete(scope: string, key: string): boolean {
    const found = this.#scopes.get(scope);
    if (!found?.entries.delete(key)) return false;
    this.size--;
    if (found.entries.size === 0) this.#scopes.delete(scope);
    return true;
  }

  sweep(now: number, limit: number): number {
    let removed = 0;
    for (const scope of this.#scopes.keys()) {
      if (removed >= limit) break;
      removed += this.remove(scope, ({ removedAt }) => removedAt <= now, limit - removed);
    }
    return removed;
  }

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
  /**
   * The position of the last checked key. It stays valid: an iterator of a Map also visits entries that are
   * added later.
   */
  #cursor: Iterator<[string, KeyEntry]> = this.entries.entries();

  removeSomeExpired(now: number, count: number): number {
    let removed = 0;
    for (let step = 0; step < count; step++) {
      const { value } = this.#cursor.next();
      if (!value) {
        this.#cursor = this.entries.entries();
        return removed;
      }
      if (value[1].removedAt > now) continue;
      this.entries.delete(value[0]);
      removed++;
    }
    return removed;
  }
}
