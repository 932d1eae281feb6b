/**
 * A consumer leases as many events in advance as its handlers finish in this time, so that workers are not idle during
 * the next call of the store.
 */
const bufferMs = 25;
/** The weight of the latest sample in the moving average, 0–1. */
const smoothing = 0.5;

/**
 * Computes how many events a consumer should hold: `concurrency`, plus as many as its handlers finish in 25 ms. So slow
 * handlers hold few events that another process could handle, and fast handlers do not run out of events.
 */
export class BatchSize {
  readonly #max: number;
  #perMs = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Adds a sample of the throughput: workers were busy for `ms` and finished this many events. */
  measured(finished: number, ms: number): void {
    if (ms <= 0) return;
    this.#perMs += smoothing * (finished / ms - this.#perMs);
  }

  target(concurrency: number): number {
    return Math.max(1, Math.min(this.#max, Math.ceil(concurrency + this.#perMs * bufferMs)));
  }
}
