import { type Clock, later, Timer } from 'holdfast';

/**
 * Tells since when this process has been running without a stop. What it reads from a socket now has come after that
 * time. A process that was suspended for a minute learns here that its messages have waited for it, and may be with others.
 */
export class Liveness {
  readonly #clock: Clock;
  readonly #ticks: Timer;
  readonly #tickMs: number;
  /** The last two ticks: the client needs a few turns of the event loop to read a response. */
  #ticked: [number, number];

  constructor(clock: Clock, tickMs: number) {
    this.#clock = clock;
    this.#tickMs = tickMs;
    this.#ticked = [clock.now(), clock.now()];
    this.#ticks = new Timer(clock, (now) => {
      this.#ticks.setIn(tickMs);
      // Node runs timers, then reads sockets, then runs this.
      later(() => {
        this.#ticked = [this.#ticked[1], now];
      });
    });
  }

  /** On the scale of `Clock.now`. */
  get since(): number {
    return this.#ticked[0];
  }

  start(): void {
    if (this.#ticks.isSet) return;
    this.#ticked = [this.#clock.now(), this.#clock.now()];
    this.#ticks.setIn(this.#tickMs);
  }

  stop(): void {
    this.#ticks.clear();
  }
}
