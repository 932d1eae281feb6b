/** When a queue counts as overloaded: if calls wait longer than `targetMs` for a whole `intervalMs`. */
export interface CodelSettings {
  /** Waits in the queue up to this time are always acceptable. */
  readonly targetMs: number;
  /**
   * How long the waits may stay above `targetMs` before the queue is overloaded. Choose more than the length
   * of a normal burst.
   */
  readonly intervalMs: number;
}

/**
 * Recognises an overloaded queue with the CoDel algorithm: the longest wait stays above `targetMs` for a
 * whole `intervalMs`.
 *
 * While the queue is overloaded, serve the newest call first, and drop calls for which `drops` is true. These
 * old calls would be answered too late anyway.
 */
export class Codel {
  /** True: all through the last interval, some call had waited longer than `targetMs`. */
  overloaded = false;

  readonly #settings: CodelSettings;
  #leastMs = Infinity;
  #endsAt = -Infinity;

  constructor(settings: CodelSettings) {
    this.#settings = settings;
  }

  /**
   * Reports the longest current wait in the queue; 0 if the queue is empty. Call it whenever a call arrives
   * or starts. After an interval without a report, the measurement starts again.
   */
  observe(now: number, longestWaitMs: number): void {
    const { targetMs, intervalMs } = this.#settings;
    if (now >= this.#endsAt) {
      this.overloaded = this.#leastMs > targetMs && now < this.#endsAt + intervalMs;
      this.#endsAt = now + intervalMs;
      this.#leastMs = longestWaitMs;
    } else this.#leastMs = Math.min(this.#leastMs, longestWaitMs);
  }

  /** Whether to drop a queued call that has waited for `waitedMs`. */
  drops(waitedMs: number): boolean {
    return this.overloaded && waitedMs > 2 * this.#settings.targetMs;
  }
}
