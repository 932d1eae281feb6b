import type { Clock } from 'holdfast';

/**
 * How long a remembered due time is used. A new event with an earlier due time may be leased late, but at
 * most by this time.
 */
const validMs = 50;

/**
 * Remembers a due time for each topic. The next lease starts to read the queue at this time, and so skips the
 * deleted rows before it.
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
   * Stores where the next lease starts to read. `dueAt` is the due time of the first leased event; `null`:
   * the lease did not find enough events.
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
