/** The results of `enter`: refused, waiting in the queue, or admitted. */
export const FULL = 0;
/** The call waits for a place. */
export const QUEUED = 1;
/** The call may go on now, and must release its place. */
export const ADMITTED = 2;

/**
 * A call that can wait for a permit. It is its own list node, so that queueing allocates nothing. Once queued, exactly
 * one of its methods is called, unless `abandon` removes it.
 */
export interface Waiter {
  /** 0 critical, 1 default, 2 sheddable. */
  readonly priority: number;
  /** From this time on, the call expires instead of being admitted. */
  readonly expiresAt: number;
  /** The neighbours in the queue, written by the bulkhead. Undefined while not queued. */
  ahead: Waiter | undefined;
  behind: Waiter | undefined;
  /** Called when the call gets a permit. */
  admitted(now: number): void;
  /** Called when `expiresAt` has passed in the queue. */
  expired(now: number): void;
  /** Called when the queue is full and a call with a higher priority takes this place. */
  displaced(now: number): void;
}

/** How many calls run at the same time, and how many wait. `reserved` places are for critical calls alone. */
export interface BulkheadSettings {
  readonly concurrent: number;
  readonly queueMax: number;
  /** Additional permits that only critical calls get. Default: 0. */
  readonly reserved?: number;
}

/**
 * Limits the calls in flight, with a bounded queue. The queue is ordered by priority, then by arrival. When it is full,
 * a call with a higher priority displaces the newest call of the lowest priority.
 *
 * The bulkhead has no timer. It notices an expired call only when the queue is full or when that call is next. To react
 * earlier, set an alarm and call `abandon`.
 */
export class Bulkhead {
  /** The permits in use. They exceed the limits only after `resize` has lowered the limits. */
  inFlight = 0;
  queued = 0;
  /** How many permits were taken back from calls that did not end in time. */
  zombies = 0;
  /** True: the newest call of each priority is served first, which is better during overload. */
  newestFirst = false;

  #settings: BulkheadSettings;
  /** One circular list of waiters for each priority, each with a sentinel node. */
  readonly #ends: readonly Waiter[] = [ring(), ring(), ring()];
  #expiresFrom = Infinity;
  #serving = false;

  constructor(settings: BulkheadSettings) {
    this.#settings = settings;
  }

  get settings(): BulkheadSettings {
    return this.#settings;
  }

  /** Takes a permit if one is free and no queued call comes first. */
  tryEnter(priority = 1): boolean {
    if (priority === 0 ? this.oldest(0) : this.queued > 0) return false;
    if (this.inFlight >= this.#permits(priority)) return false;
    this.inFlight++;
    return true;
  }

  /** Takes a permit or a place in the queue. Returns ADMITTED, QUEUED or FULL, and calls no method of `waiter`. */
  enter(now: number, waiter: Waiter): number {
    if (this.tryEnter(waiter.priority)) return ADMITTED;
    const { queueMax } = this.#settings;
    if (this.queued < queueMax) {
      this.#append(waiter);
      return QUEUED;
    }
    const expired = this.#takeExpired(now);
    const displaced = this.queued < queueMax ? undefined : this.#lessImportant(waiter.priority);
    if (displaced) this.#remove(displaced);
    const fits = this.queued < queueMax;
    if (fits) this.#append(waiter);
    // Waiters are called last, when the queue is consistent, because they may call the bulkhead again.
    for (const each of expired) each.expired(now);
    displaced?.displaced(now);
    return fits ? QUEUED : FULL;
  }

  /** Gives a permit back, and admits the next queued call. */
  leave(now: number): void {
    if (this.inFlight > 0) this.inFlight--;
    if (this.queued > 0) this.#serve(now);
  }

  /** Takes back the permit of a call that did not end in time. That call must not call `leave` later. */
  forfeit(now: number): void {
    this.zombies++;
    this.leave(now);
  }

  /** Removes a waiter without calling any of its methods. Returns false if it was not queued. */
  abandon(waiter: Waiter): boolean {
    if (!waiter.ahead) return false;
    this.#remove(waiter);
    return true;
  }

  /** Changes the limits. Calls keep their permits and places, so lower limits take effect as calls end. */
  resize(now: number, settings: BulkheadSettings): void {
    this.#settings = settings;
    this.#serve(now);
  }

  /** The waiter of a priority that was queued first. */
  oldest(priority: number): Waiter | undefined {
    const end = this.#ends[priority]!;
    return end.behind === end ? undefined : end.behind;
  }

  #permits(priority: number): number {
    const { concurrent, reserved = 0 } = this.#settings;
    return priority === 0 ? concurrent + reserved : concurrent;
  }

  #serve(now: number): void {
    // `admitted` may call `leave`. Then this loop serves the next call, without recursion.
    if (this.#serving) return;
    this.#serving = true;
    try {
      while (this.queued > 0) {
        const priority = this.#ends.findIndex((each) => each.behind !== each);
        if (this.inFlight >= this.#permits(priority)) return;
        const end = this.#ends[priority]!;
        const waiter = this.newestFirst ? end.ahead! : end.behind!;
        this.#remove(waiter);
        if (waiter.expiresAt <= now) {
          waiter.expired(now);
          continue;
        }
        this.inFlight++;
        waiter.admitted(now);
      }
    } finally {
      this.#serving = false;
    }
  }

  #takeExpired(now: number): Waiter[] {
    const expired: Waiter[] = [];
    if (now < this.#expiresFrom) return expired;
    this.#expiresFrom = Infinity;
    for (const end of this.#ends) {
      for (let waiter = end.behind!; waiter !== end; waiter = waiter.behind!) {
        if (waiter.expiresAt <= now) expired.push(waiter);
        else this.#expiresFrom = Math.min(this.#expiresFrom, waiter.expiresAt);
      }
    }
    for (const waiter of expired) this.#remove(waiter);
    return expired;
  }

  #lessImportant(priority: number): Waiter | undefined {
    return this.#ends.findLast((end, its) => its > priority && end.ahead !== end)?.ahead;
  }

  #append(waiter: Waiter): void {
    const end = this.#ends[waiter.priority]!;
    waiter.ahead = end.ahead;
    waiter.behind = end;
    end.ahead!.behind = waiter;
    end.ahead = waiter;
    this.queued++;
    this.#expiresFrom = Math.min(this.#expiresFrom, waiter.expiresAt);
  }

  #remove(waiter: Waiter): void {
    waiter.ahead!.behind = waiter.behind;
    waiter.behind!.ahead = waiter.ahead;
    waiter.ahead = waiter.behind = undefined;
    this.queued--;
  }
}

function ring(): Waiter {
  const end = {} as Waiter;
  end.ahead = end.behind = end;
  return end;
}
