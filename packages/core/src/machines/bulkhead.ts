/** A result of `enter`: the call is refused, because all permits are in use and the queue is full. */
export const FULL = 0;
/** A result of `enter`: the call waits in the queue for a permit. */
export const QUEUED = 1;
/** A result of `enter`: the call has a permit and may run. It must call `leave` when it ends. */
export const ADMITTED = 2;

/**
 * A call that can wait for a permit (the right to run). The object is also the list node of the queue, so
 * that queueing allocates no memory. A queued call ends its wait with exactly one of the three methods, or
 * with `abandon`.
 */
export interface Waiter {
  /** 0 critical, 1 default, 2 sheddable. */
  readonly priority: number;
  /** From this time on, the call must not be admitted: it expires. */
  readonly expiresAt: number;
  /** The neighbours in the queue. The bulkhead sets them; they are undefined while the call is not queued. */
  ahead: Waiter | undefined;
  behind: Waiter | undefined;
  /** Called when the call gets a permit. */
  admitted(now: number): void;
  /** Called when the call has waited in the queue until `expiresAt`. */
  expired(now: number): void;
  /** Called when the queue is full and a call with a higher priority takes this call's place in it. */
  displaced(now: number): void;
}

/** How many calls may run at the same time, and how many may wait in the queue. */
export interface BulkheadSettings {
  readonly concurrent: number;
  readonly queueMax: number;
  /** Additional permits (rights to run) that only critical calls get. Default: 0. */
  readonly reserved?: number;
}

/**
 * Limits the calls in flight. Further calls wait in a bounded queue, ordered by priority, then by arrival.
 * When the queue is full, a call with a higher priority displaces the newest call of the lowest priority.
 *
 * The bulkhead has no timer. It notices that a queued call has expired only when the queue is full or when
 * that call is next. To react earlier, set a timer and call `abandon`.
 */
export class Bulkhead {
  /**
   * The number of permits (rights to run) in use. It exceeds the limit only after `resize` has lowered the
   * limit.
   */
  inFlight = 0;
  queued = 0;
  /** How many permits (rights to run) `forfeit` has taken back from calls that did not end in time. */
  zombies = 0;
  /**
   * True: among calls of one priority, the newest is served first. During overload this is better, because
   * the oldest calls would be answered too late anyway.
   */
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

  /** Takes a permit (the right to run) if one is free and no queued call must be served before this call. */
  tryEnter(priority = 1): boolean {
    if (priority === 0 ? this.oldest(0) : this.queued > 0) return false;
    if (this.inFlight >= this.#permits(priority)) return false;
    this.inFlight++;
    return true;
  }

  /**
   * Takes a permit (the right to run), or a place in the queue. Returns ADMITTED, QUEUED or FULL. It calls no
   * method of `waiter`.
   */
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
    // The methods of waiters are called last, when the queue is consistent, because they may call the
    // bulkhead again.
    for (const each of expired) each.expired(now);
    displaced?.displaced(now);
    return fits ? QUEUED : FULL;
  }

  /** Gives a permit (the right to run) back, and admits the next queued call. */
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

  /**
   * Changes the limits. Calls keep their permits and their places in the queue, so lower limits take effect
   * as calls end.
   */
  resize(now: number, settings: BulkheadSettings): void {
    this.#settings = settings;
    this.#serve(now);
  }

  /** Returns the waiter of this priority that was queued first. */
  oldest(priority: number): Waiter | undefined {
    const end = this.#ends[priority]!;
    return end.behind === end ? undefined : end.behind;
  }

  #permits(priority: number): number {
    const { concurrent, reserved = 0 } = this.#settings;
    return priority === 0 ? concurrent + reserved : concurrent;
  }

  #serve(now: number): void {
    // `waiter.admitted` below may call `leave`, which calls this method again. In this case the loop that is
    // already running serves the next call, without recursion.
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
