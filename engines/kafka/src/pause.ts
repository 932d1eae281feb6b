import { type Clock, Timer } from 'holdfast';

/** A wait that `end` can interrupt. If `end` was called before `wait`, the next `wait` returns at once. */
export class Pause {
  readonly #timer: Timer;
  #resolve: (() => void) | undefined;
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
