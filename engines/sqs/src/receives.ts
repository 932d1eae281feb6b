import { type Clock, later, sleep, Timer } from 'holdfast';
import { batchMax } from './batches.ts';

/**
 * SQS answers at once if there is a message. So if a long poll has waited for this many ms, the queue is
 * empty.
 */
const settledMs = 1000;
/**
 * How many ms `look` waits for the open long poll. A message that was just stored may arrive as its answer.
 */
const pushMs = 100;
/** How many ms `close` waits for open requests before it aborts them. */
const closeMs = 1000;
const failureMinMs = 250;
const failureMaxMs = 5000;

export interface ReceiveSettings<T> {
  readonly clock: Clock;
  /** How long a request waits on the server while the queue is empty (long polling). */
  readonly waitSeconds: number;
  /** The most requests that are open at the same time. */
  readonly requestsMax: number;
  receive(count: number, waitSeconds: number, signal: AbortSignal): Promise<readonly T[]>;
  onMessages(messages: readonly T[]): void;
  /** Called when a request fails, but only for the first of several failures in a row. */
  onFailure(error: unknown): void;
}

/**
 * Receives messages of one queue. While the queue is empty, one long poll waits on the server. While the
 * requests come back full, more requests are sent at the same time.
 */
export class Receives<T> {
  readonly #settings: ReceiveSettings<T>;
  readonly #closed = new AbortController();
  readonly #again: Timer;
  readonly #arrivals = new Set<() => void>();
  readonly #requests = new Set<Promise<unknown>>();
  #credit = 0;
  /** How many messages the open requests ask for, in total. */
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
    // Poll one microtask later. If `look` is called meanwhile, its request goes first, because it does not
    // wait on the server.
    queueMicrotask(() => {
      if (!this.#again.isSet) this.#poll();
    });
  }

  /**
   * Asks the server for messages. Resolves when all messages that were in the queue at the time of the call
   * have arrived. Rejects if the server does not answer.
   */
  look(): Promise<void> {
    if (this.#credit <= 0 || this.#isClosed) return Promise.resolve();
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
      if (!this.#again.isSet) this.#poll();
    });
    return this.#looking;
  }

  /**
   * Sends no more requests. Open requests get `closeMs` to end, because SQS may be about to answer them with
   * messages. After that, they are aborted.
   */
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
    // A message that was just stored may be on its way as the answer of the open long poll.
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
      // Node runs timers before it reads sockets. `later` runs after that, when arrived messages have been
      // read.
      const timer = new Timer(this.#settings.clock, () => later(() => end(false)));
      timer.setIn(pushMs);
      this.#arrivals.add(arrived);
    });
  }

  /**
   * Sends several requests at a time, within the credit (the number of wanted messages). Stops when a request
   * returns fewer messages than it asked for.
   */
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
    // A running `look` fetches everything that is in the queue, and calls this method when it ends.
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
