/**
 * Besides the running events, the consumer leases as many events as the handlers finish in this time (ms). So
 * the workers have work while the next lease call is in flight.
 */
const bufferMs = 25;
const smoothing = 0.5;

/**
 * Computes how many leased events the consumer should have: `concurrency`, plus the number that the handlers
 * finish in 25 ms. So fast handlers do not run out of events, and slow handlers leave events to other
 * processes.
 */
export class BatchSize {
  readonly #max: number;
  #perMs = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Adds a throughput sample: the handlers finished `finished` events in `ms` milliseconds. */
  measured(finished: number, ms: number): void {
    if (ms <= 0) return;
    this.#perMs += smoothing * (finished / ms - this.#perMs);
  }

  target(concurrency: number): number {
    return Math.max(1, Math.min(this.#max, Math.ceil(concurrency + this.#perMs * bufferMs)));
  }
}
