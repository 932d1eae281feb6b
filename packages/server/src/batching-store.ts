import { type Clock, later, Timer } from 'holdfast';

export interface BatchingSettings {
  /** The longest time that an item waits for the store. */
  readonly timeoutMs: number;
  /**
   * The most concurrent calls to the store. Items that are submitted while all of them are pending are sent with the
   * next call.
   */
  readonly callsMax: number;
  readonly batchMax: number;
}

export const defaultBatching: Omit<BatchingSettings, 'timeoutMs'> = { callsMax: 4, batchMax: 256 };

/** After a failed call, the store counts as unavailable for this long. */
const pauseMs = 100;

/** A call that has had no result for this long is ignored from then on, and a new call may be made. */
const abandonedMs = 1000;

/**
 * Sends items to a store in batches, and never waits long for a store that hangs or is down. Items that are submitted
 * while calls are pending are sent together in the next call, so a busy server makes few calls. An item waits at most
 * `timeoutMs`; if it times out before it was sent, it is not sent.
 *
 * While a call takes longer than `timeoutMs`, or shortly after a call has failed, the store counts as unavailable:
 * `submit` resolves with `undefined` immediately. The store counts as available again when the slow call ends, or when
 * a new call succeeds.
 */
export class BatchingStore<Item, Result> {
  /** How many items got no result from the store in time. */
  missed = 0;
  lastError: unknown = undefined;

  readonly #send: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #settings: BatchingSettings;
  readonly #clock: Clock;
  readonly #onLate: (result: Result, item: Item) => void;
  /** Calls to the store that have no result yet, oldest first. */
  readonly #calls: Set<{ readonly since: number }> = new Set();
  /** Items that have no result yet, oldest first. All have the same timeout, so one timer is enough. */
  readonly #pending: PendingItem<Item, Result>[] = [];
  #pendingFrom = 0;
  readonly #timer: Timer;
  #unsent: PendingItem<Item, Result>[] = [];
  #unavailableUntil = -Infinity;

  /** `onLate` is called with the result of an item that has already timed out. */
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

  /** Sends `item` with the next call, and resolves with its result; with `undefined` if the store is unavailable. */
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
    // The oldest call may never end, so it is forgotten and this item may cause a new call. The next item is judged by
    // the oldest call that remains.
    this.#calls.delete(oldest!);
    return false;
  }

  /**
   * Called once in each turn of the event loop, so that all items of one turn are sent in one call and get their
   * results together.
   */
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

  /** Removes the settled items from the start of the list. */
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
