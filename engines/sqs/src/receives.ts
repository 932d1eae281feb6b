import { type Clock, later, sleep, Timer } from 'holdfast';
import { batchMax } from './batches.ts';

/** A request that has waited on the server for this long shows that the queue is empty: it is answered at once otherwise. */
const settledMs = 1000;
/** How long a message that was just stored may take to arrive with a request that waits on the server. */
const pushMs = 100;
/** How long the end of the engine waits for requests that are open. */
const closeMs = 1000;
const failureMinMs = 250;
const failureMaxMs = 5000;

export interface ReceiveSettings<T> {
  readonly clock: Clock;
  /** How long a request waits on the server if there is nothing. */
  readonly waitSeconds: number;
  /** The most requests at a time. */
  readonly requestsMax: number;
  receive(count: number, waitSeconds: number, signal: AbortSignal): Promise<readonly T[]>;
  onMessages(messages: readonly T[]): void;
  /** Called for the first of successive failures. */
  onFailure(error: unknown): void;
}

/**
 * Receives messages of one queue. While there is nothing, one request waits on the server. While there is more than one
 * request brings, more are sent at the same time.
 */
export class Receives<T> {
  readonly #settings: ReceiveSettings<T>;
  readonly #closed = new AbortController();
  readonly #again: Timer;
  readonly #arrivals = new Set<() => void>();
  readonly #requests = new Set<Promise<unknown>>();
  #credit = 0;
  /** How many messages the open requests may bring. */
  #asked = 0;
  #open = 0;
  #openMax = 1;
  #waitingSince: number | undefined;
  #looking: Promise<void> | undefined;
  #failures = 0;

  constructor(settings: ReceiveSettings<T>) {
    this.#settings = settings;
    this.#again = new Timer(settings.clock, () => this.#poll());
  }

  credit(count: number): void {
    this.#credit = count;
    // A look that follows in this turn comes first: it is answered at once.
    queueMicrotask(() => {
      if (!this.#again.isSet) this.#poll();
    });
  }

  /** Resolves when what the queue had has arrived. Rejects if the server does not answer. */
  look(): Promise<void> {
    if (this.#credit <= 0 || this.#isClosed) return Promise.resolve();
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
      if (!this.#again.isSet) this.#poll();
    });
    return this.#looking;
  }

  /** Asks for nothing more. Requests that wait are aborted if they do not end soon: SQS may still give them messages. */
  async close(): Promise<void> {
    this.#credit = 0;
    this.#again.clear();
    const { clock } = this.#settings;
    const ended = new AbortController();
    const late = sleep(clock, closeMs, ended.signal).catch(() => {});
    await Promise.race([Promise.allSettled(this.#requests), late]);
    ended.abort();
    this.#closed.abort();
  }

  get #isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  async #look(): Promise<void> {
    const since = this.#waitingSince;
    const isSettled = since !== undefined && this.#settings.clock.now() - since >= settledMs;
    const count = isSettled ? 0 : await this.#receive(this.#credit - this.#asked, 0);
    // A message that was stored a moment ago may be on its way with the request that waits.
    const hasSome = count > 0 || (this.#waitingSince !== undefined && (await this.#arrivesSoon()));
    if (hasSome) await this.#receiveRest();
  }

  #arrivesSoon(): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (hasArrived: boolean) => {
        timer.clear();
        this.#arrivals.delete(arrived);
        resolve(hasArrived);
      };
      const arrived = () => end(true);
      // Node runs timers before it reads sockets: what has arrived in the meantime is read first.
      const timer = new Timer(this.#settings.clock, () => later(() => end(false)));
      timer.setIn(pushMs);
      this.#arrivals.add(arrived);
    });
  }

  /** Receives within the credit, several requests at once, until one of them brings less than it could. */
  async #receiveRest(): Promise<void> {
    for (;;) {
      const left = this.#credit - this.#asked;
      if (left <= 0 || this.#isClosed) return;
      const counts = Array.from(
        { length: Math.min(this.#settings.requestsMax, Math.ceil(left / batchMax)) },
        (_, index) => Math.min(batchMax, left - index * batchMax),
      );
      const received = await Promise.all(counts.map((count) => this.#receive(count, 0)));
      if (received.some((count, index) => count < counts[index]!)) return;
    }
  }

  #poll(): void {
    // A look asks for all that there is, and comes here when it ends.
    while (!this.#looking && !this.#isClosed && this.#open < this.#openMax && this.#credit > this.#asked) {
      const waits = this.#waitingSince === undefined;
      if (waits) this.#waitingSince = this.#settings.clock.now();
      this.#open += 1;
      const count = Math.min(batchMax, this.#credit - this.#asked);
      const ended = () => {
        this.#open -= 1;
        if (waits) this.#waitingSince = undefined;
      };
      this.#receive(count, waits ? this.#settings.waitSeconds : 0, ended).then(
        (received) => {
          this.#openMax =
            received === count
              ? Math.min(this.#settings.requestsMax, this.#openMax * 2)
              : Math.max(1, Math.floor(this.#openMax / 2));
          this.#poll();
        },
        () => this.#pauseAfterFailure(),
      );
    }
  }

  #receive(wanted: number, waitSeconds: number, ended?: () => void): Promise<number> {
    const request = this.#request(wanted, waitSeconds, ended).finally(() => this.#requests.delete(request));
    this.#requests.add(request);
    return request;
  }

  /** Returns how many have arrived. */
  async #request(wanted: number, waitSeconds: number, ended?: () => void): Promise<number> {
    const count = Math.max(1, Math.min(batchMax, wanted));
    this.#asked += count;
    let messages: readonly T[];
    try {
      messages = await this.#settings.receive(count, waitSeconds, this.#closed.signal);
      this.#failures = 0;
    } catch (error) {
      if (!this.#isClosed && this.#failures++ === 0) this.#settings.onFailure(error);
      throw error;
    } finally {
      this.#asked -= count;
      ended?.();
    }
    this.#credit = Math.max(0, this.#credit - messages.length);
    if (messages.length > 0) {
      this.#settings.onMessages(messages);
      for (const arrived of [...this.#arrivals]) arrived();
    }
    return messages.length;
  }

  #pauseAfterFailure(): void {
    this.#openMax = 1;
    if (!this.#isClosed)
      this.#again.setIn(Math.min(failureMaxMs, failureMinMs * 2 ** Math.min(10, this.#failures - 1)));
  }
}
