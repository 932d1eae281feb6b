import { type Clock, later } from 'holdfast';

const heldMaxMs = 10;

/**
 * Lets timers, signals and requests run at least every 10 ms. Otherwise, handlers that never wait for I/O
 * would block them.
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
