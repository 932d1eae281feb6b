import { type Clock, later } from 'holdfast';

/** The longest time that handlers may run without yielding to the event loop. */
const heldMaxMs = 10;

/**
 * Lets workers yield to the event loop every 10 ms. If the store and the handlers never wait for I/O, their promises
 * alone would keep timers, signals and requests waiting forever.
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
