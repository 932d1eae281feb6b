import type { Clock } from 'holdfast';

/**
 * How many ms a remembered due time is used. A new event with an earlier due time is leased at most this much
 * late.
 */
const validMs = 50;

/**
 * Remembers for each topic the due time at which the next lease starts to read. So the lease skips deleted
 * rows.
 */
export class ScanStart {
  readonly #clock: Clock;
  readonly #starts = new Map<string, { readonly dueAt: number; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the due time (epoch ms) at which the next lease starts to read. 0: at the beginning. */
  of(topic: string): number {
    const start = this.#starts.get(topic);
    return start !== undefined && this.#clock.now() < start.until ? start.dueAt : 0;
  }

  /** `dueAt` is the due time of the first leased event; `null`: the lease did not find enough events. */
  record(topic: string, scanStart: number, dueAt: number | null): void {
    if (dueAt === null) this.#starts.delete(topic);
    // Only a lease from the beginning of the queue has seen that no event is due before `dueAt`.
    else if (scanStart === 0) this.#starts.set(topic, { dueAt, until: this.#clock.now() + validMs });
    else this.#moveOn(topic, dueAt);
  }

  #moveOn(topic: string, dueAt: number): void {
    const start = this.#starts.get(topic);
    if (start !== undefined)
      this.#starts.set(topic, { dueAt: Math.max(start.dueAt, dueAt), until: start.until });
  }
}
