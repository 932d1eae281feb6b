export interface CodelSettings {
  /** The longest wait in the queue that is acceptable for any length of time. */
  readonly targetMs: number;
  /** How long waits may stay above `targetMs`. Choose a time that is longer than a normal burst. */
  readonly intervalMs: number;
}

/**
 * Distinguishes a queue that absorbs a burst from one that does not drain and only adds delay to every call. A queue
 * does not drain if its longest wait was above the target for a whole interval (the CoDel algorithm, in the form that
 * servers use).
 *
 * While the queue does not drain, serve the newest call first, and drop the calls for which `drops` is true. The newest
 * call can still be answered in time, while the older calls would be answered too late.
 */
export class Codel {
  /** True: the queue did not drain in the last interval. */
  overloaded = false;

  readonly #settings: CodelSettings;
  /** The shortest of the longest waits that were reported in this interval. */
  #leastMs = Infinity;
  #endsAt = -Infinity;

  constructor(settings: CodelSettings) {
    this.#settings = settings;
  }

  /**
   * Reports the longest wait in the queue; 0 when it is empty. Call it when a call arrives and when one starts, also
   * for calls that need not wait. After an interval without a report, the queue counts as a new one.
   */
  observe(now: number, longestWaitMs: number): void {
    const { targetMs, intervalMs } = this.#settings;
    if (now >= this.#endsAt) {
      this.overloaded = this.#leastMs > targetMs && now < this.#endsAt + intervalMs;
      this.#endsAt = now + intervalMs;
      this.#leastMs = longestWaitMs;
    } else this.#leastMs = Math.min(this.#leastMs, longestWaitMs);
  }

  /** Whether to drop a call that has waited `waitedMs`; false while the queue drains. */
  drops(waitedMs: number): boolean {
    return this.overloaded && waitedMs > 2 * this.#settings.targetMs;
  }
}
