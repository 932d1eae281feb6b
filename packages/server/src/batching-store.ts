import { type Clock, later, Timer } from 'holdfast';

export interface BatchingSettings {
  readonly timeoutMs: number;
  /** The most calls to the store at the same time. */
  readonly callsMax: number;
  readonly batchMax: number;
}

export const defaultBatching: Omit<BatchingSettings, 'timeoutMs'> = { callsMax: 4, batchMax: 256 };

/** After a failed call, `submit` does not call the store for this time (ms). */
const pauseMs = 100;

/** A call to the store may never end. After this time (ms), it no longer counts as in flight. */
const abandonedMs = 1000;

/**
 * Sends items to a store in batches. `submit` resolves with `undefined` at once if the store is slow or has
 * just failed.
 */
export class BatchingStore<Item, Result> {
  missed = 0;
  lastError: unknown = undefined;

  readonly #send: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #settings: BatchingSettings;
  readonly #clock: Clock;
  readonly #onLate: (result: Result, item: Item) => void;
  readonly #calls: Set<{ readonly since: number }> = new Set();
  /** Submitted items without a result, the oldest first. */
  readonly #pending: PendingItem<Item, Result>[] = [];
  #pendingFrom = 0;
  readonly #timer: Timer;
  #unsent: PendingItem<Item, Result>[] = [];
  #unavailableUntil = -Infinity;

  /** `onLate` gets the results that arrive after the timeout. */
  constructor(
    send: (items: readonly Item[]) => Promise<readonly Result[]>,
    settings: BatchingSettings,
    clock: Clock,
    onLate: (result: Result, item: Item) => void = () => {},
  ) {
    this.#send = send;
    this.#settings = settings;
    this.#clock = clock;
    this.#onLate = onLate;
    this.#timer = new Timer(clock, (now) => this.#expire(now));
  }

  /** Resolves with the store's result for `item`, or with `undefined` if there is no result in time. */
  submit(item: Item): Promise<Result | undefined> {
    const now = this.#clock.now();
    if (this.#isUnavailable(now)) {
      this.missed++;
      return Promise.resolve(undefined);
    }
    return new Promise((resolve) => {
      const pending: PendingItem<Item, Result> = {
        item,
        resolve,
        endsAt: now + this.#settings.timeoutMs,
        isSettled: false,
      };
      if (!this.#timer.isSet) this.#timer.setAt(pending.endsAt);
      this.#pending.push(pending);
      if (this.#unsent.push(pending) === 1) later(this.#flushAll);
    });
  }

  #isUnavailable(now: number): boolean {
    if (now < this.#unavailableUntil) return true;
    if (this.#calls.size === 0) return false;
    const [oldest] = this.#calls;
    if (now - oldest!.since < this.#settings.timeoutMs) return false;
    if (now - oldest!.since < abandonedMs) return true;
    this.#calls.delete(oldest!);
    return false;
  }

  /** Runs once per iteration of the event loop, so that all items of one iteration are sent together. */
  readonly #flushAll = (): void => this.#flush(this.#clock.now());

  #flush(now: number): void {
    while (this.#unsent.length > 0 && this.#calls.size < this.#settings.callsMax) {
      const batch = this.#unsent.splice(0, this.#settings.batchMax);
      this.#call(batch, now);
    }
  }

  #call(batch: readonly PendingItem<Item, Result>[], now: number): void {
    const call = { since: now };
    this.#calls.add(call);
    this.#send(batch.map(({ item }) => item)).then(
      (results) => {
        this.#calls.delete(call);
        this.#unavailableUntil = -Infinity;
        for (let index = 0; index < batch.length; index++) {
          const pending = batch[index]!;
          const result = results[index]!;
          if (pending.isSettled) this.#onLate(result, pending.item);
          else this.#settle(pending, result);
        }
        if (this.#unsent.length > 0) this.#flush(this.#clock.now());
      },
      (error: unknown) => {
        this.#calls.delete(call);
        this.lastError = error;
        this.#unavailableUntil = this.#clock.now() + pauseMs;
        for (const pending of [...batch, ...this.#unsent.splice(0)]) this.#giveUp(pending);
      },
    );
  }

  #settle(pending: PendingItem<Item, Result>, result: Result | undefined): void {
    pending.isSettled = true;
    pending.resolve(result);
    this.#forgetSettled();
  }

  #giveUp(pending: PendingItem<Item, Result>): void {
    if (pending.isSettled) return;
    this.missed++;
    this.#settle(pending, undefined);
  }

  #forgetSettled(): void {
    const { length } = this.#pending;
    while (this.#pendingFrom < length && this.#pending[this.#pendingFrom]!.isSettled) this.#pendingFrom++;
    if (this.#pendingFrom === length) {
      this.#pending.length = 0;
      this.#pendingFrom = 0;
      this.#timer.clear();
    } else if (this.#pendingFrom >= this.#settings.batchMax) {
      this.#pending.splice(0, this.#pendingFrom);
      this.#pendingFrom = 0;
    }
  }

  #expire(now: number): void {
    for (let oldest = this.#pending[this.#pendingFrom]; oldest; oldest = this.#pending[this.#pendingFrom]) {
      if (oldest.endsAt > now) {
        this.#timer.setAt(oldest.endsAt);
        break;
      }
      this.#giveUp(oldest);
    }
    this.#unsent = this.#unsent.filter(({ isSettled }) => !isSettled);
  }
}

interface PendingItem<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result | undefined) => void;
  readonly endsAt: number;
  isSettled: boolean;
}
