/** What `enter` says: refused, waiting for a permit, or holding one. */
export const FULL = 0;
export const QUEUED = 1;
export const ADMITTED = 2;

/**
 * A call that can wait for a permit. It is its own list node, so that queueing and leaving allocate nothing and cost the
 * same however many wait. Once queued, exactly one of its methods is called, once, unless it is abandoned first.
 */
export interface Waiter {
  /** 0 critical, 1 default, 2 sheddable. */
  readonly priority: number;
  /** It is of no use to admit it at this time or later. */
  readonly expiresAt: number;
  /** The bulkhead's own; undefined while it is not in the queue. */
  ahead: Waiter | undefined;
  behind: Waiter | undefined;
  /** It holds a permit now. */
  admitted(now: number): void;
  /** It has left the queue because its time is over. */
  expired(now: number): void;
  /** It has left the full queue for someone more important. */
  displaced(now: number): void;
}

export interface BulkheadSettings {
  readonly concurrent: number;
  readonly queueMax: number;
  /** Permits on top that only critical calls get; none unless given. */
  readonly reserved?: number;
}

/**
 * Caps how many calls are in flight, with a bounded queue: by priority, then first come first served. Nobody overtakes
 * within a priority, and who is in the queue leaves it only with a permit, when its time is over, when it is abandoned,
 * or, if the queue is full, for someone more important; then it is the newest of the least important.
 *
 * It has no timer: a waiter whose time is over is found when the queue is full or when its turn comes, and holds no
 * permit in between. Who wants to know earlier sets an alarm and abandons.
 */
export class Bulkhead {
  /** Permits taken. Never above `concurrent` and the reserve but for one that was just lowered. */
  inFlight = 0;
  queued = 0;
  /** Permits taken back from calls that did not end. */
  zombies = 0;
  /** Serves the newest of a priority first: the better order while there is a standing queue (see `Codel`). */
  newestFirst = false;

  #settings: BulkheadSettings;
  /** By priority. Each is a ring that is closed by its own end, so that nobody in it is a special case. */
  readonly #ends: readonly Waiter[] = [ring(), ring(), ring()];
  /** Nobody in the queue expires before this. */
  #expiresFrom = Infinity;
  #serving = false;

  constructor(settings: BulkheadSettings) {
    this.#settings = settings;
  }

  get settings(): BulkheadSettings {
    return this.#settings;
  }

  /** Takes a permit if one is free and nobody waits for it who goes first. */
  tryEnter(priority = 1): boolean {
    if (priority === 0 ? this.oldest(0) : this.queued > 0) return false;
    if (this.inFlight >= this.#permits(priority)) return false;
    this.inFlight++;
    return true;
  }

  /** Takes a permit or a place in the queue. `waiter` is not told of what this answers: ADMITTED, QUEUED or FULL. */
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
    // Told last, so that whatever they do meets a queue in order.
    for (const each of expired) each.expired(now);
    displaced?.displaced(now);
    return fits ? QUEUED : FULL;
  }

  /** Gives a permit back, and on to the next who waits. */
  leave(now: number): void {
    if (this.inFlight > 0) this.inFlight--;
    if (this.queued > 0) this.#serve(now);
  }

  /** Takes a permit back from a call whose lease has ended. The call, should it end after all, must not `leave` as well. */
  forfeit(now: number): void {
    this.zombies++;
    this.leave(now);
  }

  /** Takes a waiter out of the queue; false when it is not in it (any more). It is told nothing. */
  abandon(waiter: Waiter): boolean {
    if (!waiter.ahead) return false;
    this.#remove(waiter);
    return true;
  }

  /** Changes the limits. Nobody loses a permit or a place: the numbers fall as calls end. */
  resize(now: number, settings: BulkheadSettings): void {
    this.#settings = settings;
    this.#serve(now);
  }

  /** Who has waited longest in a priority. */
  oldest(priority: number): Waiter | undefined {
    const end = this.#ends[priority]!;
    return end.behind === end ? undefined : end.behind;
  }

  #permits(priority: number): number {
    const { concurrent, reserved = 0 } = this.#settings;
    return priority === 0 ? concurrent + reserved : concurrent;
  }

  #serve(now: number): void {
    // A call that ends at once leaves while it is being admitted: the loop goes on instead of going deeper.
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
