/** The consumer leases work for this many ms in advance. So workers stay busy during the next call of the store. */
const bufferMs = 25;
const smoothing = 0.5;

/**
 * Computes how many events to hold: `concurrency`, plus as many as the handlers finish in 25 ms. So fast handlers do
 * not run out of events, and slow handlers leave events to other processes.
 */
export class BatchSize {
  readonly #max: number;
  #perMs = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Adds a sample: the handlers finished this many events in `ms`. */
  measured(finished: number, ms: number): void {
    if (ms <= 0) return;
    this.#perMs += smoothing * (finished / ms - this.#perMs);
  }

  target(concurrency: number): number {
    return Math.max(1, Math.min(this.#max, Math.ceil(concurrency + this.#perMs * bufferMs)));
  }
}
