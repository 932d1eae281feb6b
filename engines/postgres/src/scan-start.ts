import type { Clock } from 'holdfast';

/**
 * How long (ms) a remembered scan start is used. An event that becomes due before that start waits at most this long.
 */
const validMs = 50;

/**
 * Remembers for each topic the due time at which the next lease starts to read the ready queue, as long as each lease
 * returns as many events as requested. So a lease need not scan again the entries that earlier leases have deleted.
 */
export class ScanStart {
  readonly #clock: Clock;
  readonly #starts = new Map<string, { readonly dueAt: number; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the due time at which the next lease starts to read, or 0 if it must read the queue from its front. */
  of(topic: string): number {
    const start = this.#starts.get(topic);
    return start !== undefined && this.#clock.now() < start.until ? start.dueAt : 0;
  }

  /**
   * Records that a lease which started to read at `scanStart` found its first event at `dueAt`. `dueAt` is `null` if
   * the lease returned fewer events than requested, or only asked for suspects (events whose lease has expired).
   */
  record(topic: string, scanStart: number, dueAt: number | null): void {
    if (dueAt === null) this.#starts.delete(topic);
    // Only a lease that started at the front of the queue knows that no event is due before `dueAt`.
    else if (scanStart === 0) this.#starts.set(topic, { dueAt, until: this.#clock.now() + validMs });
    else this.#moveOn(topic, dueAt);
  }

  #moveOn(topic: string, dueAt: number): void {
    const start = this.#starts.get(topic);
    if (start !== undefined)
      this.#starts.set(topic, { dueAt: Math.max(start.dueAt, dueAt), until: start.until });
  }
}
