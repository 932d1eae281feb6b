import { Timer } from 'holdfast';
import type { Database } from './database.ts';

export interface Listener {
  onNotification(received: (topic: string) => void): void;
  onEnd(ended: () => void): void;
  listen(channel: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * The fewest ms between two notifications of a topic. A consumer that wakes up reads all due events anyway.
 */
const apartMs = 5;
const retryMs = { first: 100, most: 5000 };

/** A pause of `apartMs` after a notification. `isPending`: another notification is sent after the pause. */
interface Gap {
  readonly timer: Timer;
  isPending: boolean;
}

/**
 * Sends a notification without waiting for the disk. A server crash may lose it, but also disconnects all
 * listeners.
 */
const notifyText = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`;

/**
 * Tells consumers that an event may be due. NOTIFY takes a lock that slows down all commits, so it is sent
 * only if another process sleeps. Consumers also poll.
 */
export class Doorbell {
  readonly #database: Database;
  readonly #channel: string;
  readonly #open: () => Promise<Listener>;
  readonly #rings = new Map<string, Set<() => void>>();
  readonly #recent = new Map<string, Gap>();
  readonly #retry: Timer;
  #listener: Listener | undefined;
  #isListening = false;
  #isClosed = false;
  #waitMs = retryMs.first;

  constructor(database: Database, channel: string, open: () => Promise<Listener>) {
    this.#database = database;
    this.#channel = channel;
    this.#open = open;
    this.#retry = new Timer(database.clock, () => void this.#listen());
  }

  listen(topic: string, ring: () => void): () => void {
    const rings = this.#rings.get(topic) ?? new Set();
    this.#rings.set(topic, rings.add(ring));
    if (!this.#isListening) {
      this.#isListening = true;
      void this.#listen();
    }
    return () => void rings.delete(ring);
  }

  /** A consumer may call the broker, so a microtask lets the current call end first. */
  ring(topic: string): void {
    for (const ring of this.#rings.get(topic) ?? [])
      queueMicrotask(() => this.#rings.get(topic)?.has(ring) && ring());
  }

  /**
   * Notifies other processes. If this process has a consumer, it waits for `apartMs`: that consumer probably
   * takes the event first.
   */
  notify(topic: string): void {
    const recent = this.#recent.get(topic);
    if (recent) recent.isPending = true;
    else if (this.#rings.get(topic)?.size) this.#startGap(topic).isPending = true;
    else this.#send(topic);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#retry.clear();
    for (const { timer } of this.#recent.values()) timer.clear();
    const pending = [...this.#recent].filter(([, { isPending }]) => isPending);
    this.#recent.clear();
    await Promise.all(pending.map(([topic]) => this.#sendNow(topic)));
    await this.#listener?.close();
  }

  #send(topic: string): void {
    this.#startGap(topic);
    void this.#sendNow(topic);
  }

  async #sendNow(topic: string): Promise<void> {
    try {
      await this.#database.rows(notifyText, [this.#channel, topic]);
    } catch {
      // Ignore the error: consumers also poll.
    }
  }

  #startGap(topic: string): Gap {
    const timer = new Timer(this.#database.clock, () => {
      this.#recent.delete(topic);
      // A consumer may have read the queue before the latest event was stored, so notify again.
      if (gap.isPending) this.#send(topic);
    });
    const gap: Gap = { timer, isPending: false };
    this.#recent.set(topic, gap);
    timer.setIn(apartMs);
    return gap;
  }

  async #listen(): Promise<void> {
    try {
      const listener = await this.#open();
      if (this.#isClosed) return await listener.close();
      this.#listener = listener;
      listener.onNotification((topic) => this.ring(topic));
      listener.onEnd(() => this.#lost());
      await listener.listen(this.#channel);
      this.#waitMs = retryMs.first;
      // Notifications may have been missed while there was no connection.
      for (const topic of this.#rings.keys()) this.ring(topic);
    } catch {
      // The server is down. Other calls report that, and consumers poll.
      this.#lost();
    }
  }

  #lost(): void {
    if (this.#isClosed) return;
    this.#listener = undefined;
    this.#retry.setIn(this.#waitMs);
    this.#waitMs = Math.min(retryMs.most, this.#waitMs * 2);
  }
}
