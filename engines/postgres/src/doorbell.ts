import { Timer } from 'holdfast';
import type { Database } from './database.ts';

/** A connection that receives notifications until it is lost. */
export interface Listener {
  onNotification(received: (topic: string) => void): void;
  onEnd(ended: () => void): void;
  listen(channel: string): Promise<void>;
  close(): Promise<void>;
}

/** The shortest time between two notifications of a topic: a consumer that wakes up reads everything that is due. */
const apartMs = 5;
const retryMs = { first: 100, most: 5000 };

/** The time after a notification, and whether another one is to be sent at its end. */
interface Gap {
  readonly timer: Timer;
  isPending: boolean;
}

/** A notification that a crash of the server undoes had no listener left: it need not wait for the disk. */
const notifyText = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`;

/**
 * Rings in this process at once, and in others by NOTIFY, but only when a consumer sleeps: a NOTIFY takes a lock that all commits of
 * the database share. It may fail to ring, so consumers also poll.
 */
export class Doorbell {
  readonly #database: Database;
  readonly #channel: string;
  readonly #open: () => Promise<Listener>;
  readonly #rings = new Map<string, Set<() => void>>();
  /** By topic: a notification was sent less than `apartMs` ago. */
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

  /** For consumers of this process. In a microtask: a listener may call the broker, and must find the event that rang it. */
  ring(topic: string): void {
    for (const ring of this.#rings.get(topic) ?? [])
      queueMicrotask(() => this.#rings.get(topic)?.has(ring) && ring());
  }

  /** For consumers of other processes; after `apartMs` if this process has a consumer, which mostly takes the event first. */
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
      // It may fail to ring: consumers also poll.
    }
  }

  #startGap(topic: string): Gap {
    const timer = new Timer(this.#database.clock, () => {
      this.#recent.delete(topic);
      // The consumer that the last notification woke may have read before this event was there.
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
      // Notifications may have been missed without a connection.
      for (const topic of this.#rings.keys()) this.ring(topic);
    } catch {
      // The server cannot be reached, as every other call reports; consumers poll meanwhile.
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
