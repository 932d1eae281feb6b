import { type Clock, later, Timer } from 'holdfast';

export interface BatchingSettings {
  /** The longest wait for the store. */
  readonly timeoutMs: number;
  /** Concurrent calls to the store. Items that are submitted meanwhile go together with the next call. */
  readonly callsMax: number;
  readonly batchMax: number;
}

export const defaultBatching: Omit<BatchingSettings, 'timeoutMs'> = { callsMax: 4, batchMax: 256 };

/** For this long after an error the store counts as unavailable. */
const pauseMs = 100;

/** A call without a result for this long no longer keeps a new call from being made. */
const abandonedMs = 1000;

/**
 * A client of a store that may hang, be killed and come back. Items that are submitted while calls are pending go together in
 * the next call, so a busy server makes few calls; an item that has timed out is not sent. No item waits longer than the
 * timeout. While a call is overdue, or just after one failed, items do not wait at all: the store counts as unavailable
 * until that call ends, or a new one succeeds.
 */
export class BatchingStore<Item, Result> {
  /** Items for which the store gave no result in time. */
  missed = 0;
  lastError: unknown = undefined;

  readonly #send: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #settings: BatchingSettings;
  readonly #clock: Clock;
  readonly #onLate: (result: Result, item: Item) => void;
  /** The pending calls, oldest first. */
  readonly #calls: Set<{ readonly since: number }> = new Set();
  /** All pending items, oldest first. All have the same timeout, so one timer is enough. */
  readonly #pending: PendingItem<Item, Result>[] = [];
  #pendingFrom = 0;
  readonly #timer: Timer;
  #unsent: PendingItem<Item, Result>[] = [];
  #unavailableUntil = -Infinity;

  /** `onLate` gets the results of items that have timed out. */
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

  /** `undefined`: the store is unavailable. */
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
    // The oldest call may never end. One new call is made instead of it, and the next item is judged by the oldest of the rest.
    this.#calls.delete(oldest!);
    return false;
  }

  /** Called once a turn of the event loop, so that all items of one turn share a call, and their results arrive together. */
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

  /** Skips the settled items at the head of the list. */
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
