import type { Clock } from 'holdfast';

/**
 * How long a remembered position is used. A new event with an earlier due time is leased at most this much
 * late.
 */
const validMs = 50;

/**
 * Remembers for each topic from which due time on the next lease reads the queue. So a lease skips rows that
 * are deleted.
 */
export class ScanStart {
  readonly #clock: Clock;
  readonly #starts = new Map<string, { readonly dueAt: number; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Returns a due time: the next lease reads only events that are due at that time or later. 0: the whole
   * queue.
   */
  of(topic: string): number {
    const start = this.#starts.get(topic);
    return start !== undefined && this.#clock.now() < start.until ? start.dueAt : 0;
  }

  /**
   * Stores the due time of the first event of a lease. `dueAt` is `null` if the lease did not find enough
   * events.
   */
  record(topic: string, scanStart: number, dueAt: number | null): void {
    if (dueAt === null) this.#starts.delete(topic);
    // Only a lease that read from the beginning knows that no event is due before `dueAt`.
    else if (scanStart === 0) this.#starts.set(topic, { dueAt, until: this.#clock.now() + validMs });
    else this.#moveOn(topic, dueAt);
  }

  #moveOn(topic: string, dueAt: number): void {
    const start = this.#starts.get(topic);
    if (start !== undefined)
      this.#starts.set(topic, { dueAt: Math.max(start.dueAt, dueAt), until: start.until });
  }
}
