import { type Clock, later } from 'holdfast';

/** Nobody else is kept waiting for longer than this. */
const heldMaxMs = 10;

/**
 * Lets go of the thread now and then. Where a store answers in the same tick and handlers do, too, promises alone would keep
 * signals, heartbeats and requests waiting for ever.
 */
export class EventLoopYielder {
  readonly #clock: Clock;
  #since = 0;
  #yielding: Promise<void> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  isDue(now: number): boolean {
    return now - this.#since > heldMaxMs;
  }

  yield(): Promise<void> {
    this.#yielding ??= new Promise((resolve) => {
      later(() => {
        this.#yielding = undefined;
        this.#since = this.#clock.now();
        resolve();
      });
    });
    return this.#yielding;
  }
}
