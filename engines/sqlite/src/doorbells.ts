import { Timer } from 'holdfast';
import type { Store } from './store.ts';

/**
 * How often, in ms, to check whether another process has written to the file. A check takes about 3
 * microseconds.
 */
const lookMs = 10;

/** Calls listeners when an event of their topic may be due. */
export class Doorbells {
  readonly #store: Store;
  readonly #bells = new Map<string, Set<() => void>>();
  readonly #dataVersion;
  readonly #due = new Set<string>();
  readonly #timer: Timer;
  #seen = 0;

  constructor(store: Store) {
    this.#store = store;
    this.#timer = new Timer(store.clock, () => this.#look());
    // `data_version` changes only with commits of other connections.
    this.#dataVersion = store.prepare('PRAGMA data_version');
    store.onRollback(() => this.#due.clear());
  }

  add(topic: string, ring: () => void): () => void {
    const rings = this.#bells.get(topic) ?? new Set();
    this.#bells.set(topic, rings.add(ring));
    if (!this.#timer.isSet) {
      this.#seen = this.#version();
      this.#lookLater();
    }
    return () => {
      rings.delete(ring);
      if (rings.size === 0) this.#bells.delete(topic);
      if (this.#bells.size === 0) this.stop();
    };
  }

  ringAfterCommit(topic: string): void {
    if (!this.#bells.has(topic)) return;
    if (this.#due.size === 0) this.#store.afterCommit(() => this.#ringDue());
    this.#due.add(topic);
  }

  #look(): void {
    const version = this.#version();
    if (version !== this.#seen) {
      this.#seen = version;
      for (const topic of this.#bells.keys()) this.#ringTopic(topic);
    }
    this.#lookLater();
  }

  stop(): void {
    this.#timer.clear();
  }

  #ringDue(): void {
    for (const topic of this.#due) this.#ringTopic(topic);
    this.#due.clear();
  }

  #ringTopic(topic: string): void {
    // A listener may call the broker, so call it in a microtask, after the current call.
    for (const ring of this.#bells.get(topic) ?? []) queueMicrotask(ring);
  }

  #lookLater(): void {
    if (this.#bells.size > 0) this.#timer.setIn(lookMs);
  }

  #version(): number {
    return Number(this.#dataVersion.get()?.data_version);
  }
}
