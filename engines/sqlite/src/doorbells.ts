import { Alarm } from 'holdfast';
import type { Store } from './store.ts';

/** How often the file is asked whether another process has written to it. Asking takes some three microseconds. */
const lookMs = 10;

/** Who waits for something to be due. Nothing ticks while no one does. */
export class Doorbells extends Alarm {
  readonly #store: Store;
  readonly #bells = new Map<string, Set<() => void>>();
  readonly #dataVersion;
  /** Topics to ring for when the transaction under way is committed. */
  readonly #due = new Set<string>();
  #seen = 0;

  constructor(store: Store) {
    super();
    this.#store = store;
    // Changes with the commits of other connections only: our own ring by themselves.
    this.#dataVersion = store.prepare('PRAGMA data_version');
    store.onRollback(() => this.#due.clear());
  }

  add(topic: string, ring: () => void): () => void {
    const rings = this.#bells.get(topic) ?? new Set();
    this.#bells.set(topic, rings.add(ring));
    if (this.index < 0) {
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

  /** Time to look for what others have written. */
  ring(): void {
    const version = this.#version();
    if (version !== this.#seen) {
      this.#seen = version;
      for (const topic of this.#bells.keys()) this.#ringTopic(topic);
    }
    this.#lookLater();
  }

  stop(): void {
    this.#store.clock.clear(this);
  }

  #ringDue(): void {
    for (const topic of this.#due) this.#ringTopic(topic);
    this.#due.clear();
  }

  #ringTopic(topic: string): void {
    // In a microtask: a listener may call the broker, and must find what rang it.
    for (const ring of this.#bells.get(topic) ?? []) queueMicrotask(ring);
  }

  #lookLater(): void {
    const { clock } = this.#store;
    if (this.#bells.size > 0) clock.set(this, clock.now() + lookMs);
  }

  #version(): number {
    return Number(this.#dataVersion.get()?.data_version);
  }
}
