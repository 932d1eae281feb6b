import { Alarm, type Clock } from 'holdfast';

/** Calls a function at a time, or after. */
export class Bell extends Alarm {
  readonly #clock: Clock;
  readonly #onRing: () => void;

  constructor(clock: Clock, onRing: () => void) {
    super();
    this.#clock = clock;
    this.#onRing = onRing;
  }

  get isSet(): boolean {
    return this.index >= 0;
  }

  /** Rings no later than after `ms`; one that would ring earlier stays. */
  within(ms: number): void {
    const at = this.#clock.now() + ms;
    if (ms < Infinity && (this.index < 0 || at < this.at)) this.#clock.set(this, at);
  }

  clear(): void {
    this.#clock.clear(this);
  }

  ring(): void {
    this.#onRing();
  }
}
