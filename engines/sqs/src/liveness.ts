import { type Clock, later, Timer } from 'holdfast';

/**
 * Tells since when this process has been running without interruption. A response may have waited in the
 * socket while the process was suspended, for example for a minute. Then the visibility timeout of its
 * messages counts from before the suspension, and other processes may have received them already.
 */
export class Liveness {
  readonly #clock: Clock;
  readonly #ticks: Timer;
  readonly #tickMs: number;
  /**
   * The times of the last two ticks. The older one counts, because reading a response takes a few turns of
   * the event loop.
   */
  #ticked: [number, number];

  constructor(clock: Clock, tickMs: number) {
    this.#clock = clock;
    this.#tickMs = tickMs;
    this.#ticked = [clock.now(), clock.now()];
    this.#ticks = new Timer(clock, (now) => {
      this.#ticks.setIn(tickMs);
      // Node runs timers first, then reads sockets, and then runs this callback.
      later(() => {
        this.#ticked = [this.#ticked[1], now];
      });
    });
  }

  /** The process has been running without interruption since this time, in ms of `Clock.now`. */
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
