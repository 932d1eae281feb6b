/** The work that is leased ahead, so that workers are not idle while the store is asked for more. */
const bufferMs = 25;
/** The weight of the latest sample, 0–1. */
const smoothing = 0.5;

/**
 * How many events to lease ahead: `concurrency`, plus what handlers finish in 25 ms. Slow handlers then hold almost no events
 * that another process could handle, and fast ones do not run out of work.
 */
export class BatchSize {
  readonly #max: number;
  #perMs = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Takes a sample: `finished` events in `ms`, during which workers always had work. */
  measured(finished: number, ms: number): void {
    if (ms <= 0) return;
    this.#perMs += smoothing * (finished / ms - this.#perMs);
  }

  target(concurrency: number): number {
    return Math.max(1, Math.min(this.#max, Math.ceil(concurrency + this.#perMs * bufferMs)));
  }
}
