export interface CodelSettings {
  /** A wait that is fine to have all the time. */
  readonly targetMs: number;
  /** How long the shortest wait may stay above the target. Longer than any burst that is fine. */
  readonly intervalMs: number;
}

/**
 * Tells a queue that absorbs bursts, which is good, from one that stands, which only makes everybody late: it stands when
 * the longest wait in it was never at or below the target in a whole interval (CoDel, as servers use it).
 *
 * While it stands, serve the newest first and drop who has waited long: the newest are still in time, and
 * those who have waited would be served too late to matter.
 */
export class Codel {
  /** The queue stands. */
  overloaded = false;

  readonly #settings: CodelSettings;
  /** The shortest of the longest waits in this interval. */
  #leastMs = Infinity;
  #endsAt = -Infinity;

  constructor(settings: CodelSettings) {
    this.#settings = settings;
  }

  /**
   * Tells how long the one has waited that has waited longest: 0 when the queue is empty. To be told at each arrival and
   * at each start, also of calls that need not wait; a queue that was not heard of for an interval is a new one.
   */
  observe(now: number, longestWaitMs: number): void {
    const { targetMs, intervalMs } = this.#settings;
    if (now >= this.#endsAt) {
      this.overloaded = this.#leastMs > targetMs && now < this.#endsAt + intervalMs;
      this.#endsAt = now + intervalMs;
      this.#leastMs = longestWaitMs;
    } else this.#leastMs = Math.min(this.#leastMs, longestWaitMs);
  }

  /** Whether who has waited so long is better dropped: never while the queue does not stand. */
  drops(waitedMs: number): boolean {
    return this.overloaded && waitedMs > 2 * this.#settings.targetMs;
  }
}
