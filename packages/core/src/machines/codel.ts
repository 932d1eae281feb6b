/** A queue in which calls wait longer than `targetMs` for a whole `intervalMs` drops some of them. */
export interface CodelSettings {
  /** A wait in the queue up to this is always acceptable. */
  readonly targetMs: number;
  /** How long waits may stay above `targetMs`. Choose more than the length of a normal burst. */
  readonly intervalMs: number;
}

/**
 * Recognises a queue that does not drain: its longest wait was above the target for a whole interval (the CoDel
 * algorithm).
 *
 * While the queue does not drain, serve the newest call first, and drop calls for which `drops` is true. Older calls
 * would be answered too late anyway.
 */
export class Codel {
  /** True: the queue did not drain in the last interval. */
  overloaded = false;

  readonly #settings: CodelSettings;
  #leastMs = Infinity;
  #endsAt = -Infinity;

  constructor(settings: CodelSettings) {
    this.#settings = settings;
  }

  /**
   * Reports the longest wait in the queue; 0 when it is empty. Call it whenever a call arrives or starts. After an
   * interval without a report, the measurement starts anew.
   */
  observe(now: number, longestWaitMs: number): void {
    const { targetMs, intervalMs } = this.#settings;
    if (now >= this.#endsAt) {
      this.overloaded = this.#leastMs > targetMs && now < this.#endsAt + intervalMs;
      this.#endsAt = now + intervalMs;
      this.#leastMs = longestWaitMs;
    } else this.#leastMs = Math.min(this.#leastMs, longestWaitMs);
  }

  /** Whether to drop a call that has waited `waitedMs`. */
  drops(waitedMs: number): boolean {
    return this.overloaded && waitedMs > 2 * this.#settings.targetMs;
  }
}
