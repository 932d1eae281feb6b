import { type Clock, Timer } from 'holdfast';

/** Waits for a time, or until it is ended. If it was ended before, it does not wait. */
export class Pause {
  readonly #timer: Timer;
  #resolve: (() => void) | undefined;
  /** It was ended before anybody waited. */
  #isOver = false;

  constructor(clock: Clock) {
    this.#timer = new Timer(clock, () => this.end());
  }

  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      if (this.#isOver) this.end();
      else this.#timer.setIn(ms);
    });
  }

  end(): void {
    this.#timer.clear();
    this.#isOver = this.#resolve === undefined;
    this.#resolve?.();
    this.#resolve = undefined;
  }
}
