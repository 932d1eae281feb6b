import { Alarm, type Clock } from 'holdfast';
import type { Database } from './database.ts';

/** A connection that hears notifications, for as long as it lasts. */
export interface Listener {
  onNotification(heard: (topic: string) => void): void;
  onEnd(ended: () => void): void;
  listen(channel: string): Promise<void>;
  close(): Promise<void>;
}

/** Notifications for a topic are at least this far apart: what a notification wakes looks at everything. */
const apartMs = 5;
const retryMs = { first: 100, most: 5000 };

/** Nobody is left to hear what a crash of the server takes back: it need not wait for the disk. */
const notifyText = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`;

/**
 * Rings in this process at once, and in others by NOTIFY, but only when a consumer found nothing and went to sleep: a NOTIFY
 * takes a lock that all commits of the database share. It may fail to ring, so consumers look anyway.
 */
export class Doorbell {
  readonly #database: Database;
  readonly #channel: string;
  readonly #open: () => Promise<Listener>;
  readonly #rings = new Map<string, Set<() => void>>();
  readonly #recent = new Map<string, Pause>();
  readonly #retry: Pause;
  #listener: Listener | undefined;
  #isListening = false;
  #isClosed = false;
  #waitMs = retryMs.first;

  constructor(database: Database, channel: string, open: () => Promise<Listener>) {
    this.#database = database;
    this.#channel = channel;
    this.#open = open;
    this.#retry = new Pause(database.clock, () => void this.#listen());
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

  /** For who is here. In a microtask: a listener may call the broker, and must find what rang it. */
  ring(topic: string): void {
    for (const ring of this.#rings.get(topic) ?? [])
      queueMicrotask(() => this.#rings.get(topic)?.has(ring) && ring());
  }

  /** For who is elsewhere; a little later where someone is here, who has been rung already and mostly takes it. */
  notify(topic: string): void {
    const recent = this.#recent.get(topic);
    if (recent) recent.isWanted = true;
    else if (this.#rings.get(topic)?.size) this.#pause(topic).isWanted = true;
    else this.#send(topic);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#retry.end();
    for (const pause of this.#recent.values()) pause.end();
    const untold = [...this.#recent].filter(([, { isWanted }]) => isWanted);
    this.#recent.clear();
    await Promise.all(untold.map(([topic]) => this.#tell(topic)));
    await this.#listener?.close();
  }

  #send(topic: string): void {
    this.#pause(topic);
    void this.#tell(topic);
  }

  async #tell(topic: string): Promise<void> {
    try {
      await this.#database.rows(notifyText, [this.#channel, topic]);
    } catch {
      // It may fail to ring: who sleeps looks again by itself.
    }
  }

  #pause(topic: string): Pause {
    const pause = new Pause(this.#database.clock, () => {
      this.#recent.delete(topic);
      // What came since the last notification may have been overlooked by whom it woke.
      if (pause.isWanted) this.#send(topic);
    });
    this.#recent.set(topic, pause);
    pause.start(apartMs);
    return pause;
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
      // Whatever was missed while nobody listened.
      for (const topic of this.#rings.keys()) this.ring(topic);
    } catch {
      // The server is away, as every other call says; here it only means that consumers look by themselves.
      this.#lost();
    }
  }

  #lost(): void {
    if (this.#isClosed) return;
    this.#listener = undefined;
    this.#retry.start(this.#waitMs);
    this.#waitMs = Math.min(retryMs.most, this.#waitMs * 2);
  }
}

class Pause extends Alarm {
  isWanted = false;
  readonly #clock: Clock;
  readonly #over: () => void;

  constructor(clock: Clock, over: () => void) {
    super();
    this.#clock = clock;
    this.#over = over;
  }

  start(ms: number): void {
    this.#clock.set(this, this.#clock.now() + ms);
  }

  end(): void {
    this.#clock.clear(this);
  }

  override ring(): void {
    this.#over();
  }
}
