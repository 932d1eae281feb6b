import { Timer } from 'holdfast';
import type { Database } from './database.ts';

export interface Listener {
  onNotification(received: (topic: string) => void): void;
  onEnd(ended: () => void): void;
  listen(channel: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * The shortest time (ms) between two notifications of a topic. More notifications are not needed, because a consumer
 * that wakes up reads all events that are due.
 */
const apartMs = 5;
const retryMs = { first: 100, most: 5000 };

/**
 * A pause of `apartMs` in which no notification of the topic is sent. If `isPending`, a notification is sent at the end
 * of the pause.
 */
interface Gap {
  readonly timer: Timer;
  isPending: boolean;
}

/**
 * Sends a notification without waiting for the disk. A crash of the server may lose it, but then all listeners have
 * lost their connections, too.
 */
const notifyText = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`;

/**
 * Tells consumers that an event may be due. Consumers of this process are called directly. Consumers of other
 * processes are told by a NOTIFY, which is sent only if one of them sleeps, because NOTIFY takes a lock that all
 * commits of the database share. A notification may get lost, so consumers also poll.
 */
export class Doorbell {
  readonly #database: Database;
  readonly #channel: string;
  readonly #open: () => Promise<Listener>;
  readonly #rings = new Map<string, Set<() => void>>();
  /** For each topic, the current pause in which no notification is sent. */
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

  /**
   * Calls the consumers of this process. A consumer may call the broker and must then find the new event, so the
   * consumer is called in a microtask.
   */
  ring(topic: string): void {
    for (const ring of this.#rings.get(topic) ?? [])
      queueMicrotask(() => this.#rings.get(topic)?.has(ring) && ring());
  }

  /**
   * Notifies consumers of other processes. If this process has a consumer, that consumer usually leases the event, so
   * the notification for the others is sent only after `apartMs`.
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
      // The error is ignored: consumers also poll, so they find the event without a notification.
    }
  }

  #startGap(topic: string): Gap {
    const timer = new Timer(this.#database.clock, () => {
      this.#recent.delete(topic);
      // A consumer that the last notification woke may have read the queue before the latest event was stored. So
      // another notification is sent.
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
      // The server cannot be reached. Every other call reports that, and consumers poll until the connection is back.
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
