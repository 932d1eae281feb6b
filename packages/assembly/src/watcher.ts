import type { Journal, StoredAssembly } from '@holdfast/contracts';
import { afterMicrotasks } from './after-microtasks.ts';

type Listener = (stored: StoredAssembly | undefined) => void;

/** Reads watched assemblies when they may have changed, several in one call. */
export class Watcher {
  readonly #journal: Journal;
  readonly #isLocal: (id: string) => boolean;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #rung = new Set<string>();
  #isScheduled = false;

  /**
   * `isLocal` returns true if the assembly runs in this process. In this case, the worker calls `changed`
   * when the assembly ends.
   */
  constructor(journal: Journal, isLocal: (id: string) => boolean) {
    this.#journal = journal;
    this.#isLocal = isLocal;
  }

  /**
   * Calls `listener` now, and whenever the assembly may have changed. Without `withProgress`, a local assembly
   * is reported only when it ends.
   */
  watch(id: string, listener: Listener, withProgress = false): () => void {
    const listeners = this.#listeners.get(id) ?? new Set();
    this.#listeners.set(id, listeners.add(listener));
    const unwatch = this.#journal.watch(id, () => {
      if (withProgress || !this.#isLocal(id)) this.changed(id);
    });
    if (withProgress || !this.#isLocal(id)) this.changed(id);
    return () => {
      unwatch();
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(id);
    };
  }

  changed(id: string): void {
    if (!this.#listeners.has(id)) return;
    this.#rung.add(id);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    afterMicrotasks(() => void this.#read());
  }

  async #read(): Promise<void> {
    this.#isScheduled = false;
    const ids = [...this.#rung];
    this.#rung.clear();
    try {
      const stored = await this.#journal.get(ids);
      ids.forEach((id, index) => {
        for (const listener of this.#listeners.get(id) ?? []) listener(stored[index]);
      });
    } catch {
      // The store did not answer. The next change notification reads again.
    }
  }
}
