/** A buffer of so much work hides what it takes to ask the store for more. */
const bufferMs = 25;
/** The weight of the latest measurement. */
const smoothing = 0.5;

/**
 * How many events to have in hand: as many as handlers run at once, and what they finish in a moment besides. Slow handlers
 * then hold next to nothing that another process could do, and fast ones are never short of work.
 */
export class BatchSize {
  readonly #max: number;
  #perMs = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** So many were finished in so long, with work at hand all the time. */
  measured(finished: number, ms: number): void {
    if (ms <= 0) return;
    this.#perMs += smoothing * (finished / ms - this.#perMs);
  }

  target(concurrency: number): number {
    return Math.max(1, Math.min(this.#max, Math.ceil(concurrency + this.#perMs * bufferMs)));
  }
}
