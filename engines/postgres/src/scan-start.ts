import type { Clock } from 'holdfast';

/** How long a start position is used. A new event that is due before that position waits at most this long. */
const validMs = 50;

/**
 * Remembers the position in the queue at which the next lease starts to read. So a lease need not scan deleted rows.
 */
export class ScanStart {
  readonly #clock: Clock;
  readonly #starts = new Map<string, { readonly dueAt: number; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the due time from which the next lease reads the queue. 0 means the whole queue. */
  of(topic: string): number {
    const start = this.#starts.get(topic);
    return start !== undefined && this.#clock.now() < start.until ? start.dueAt : 0;
  }

  /** Records where a lease found its first event. `dueAt` is `null` if the lease did not find enough events. */
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
