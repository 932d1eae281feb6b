import { type Clock, later, Timer } from 'holdfast';

/**
 * Tells since when this process has run without interruption. While a process is suspended, responses wait in
 * its socket. When it reads their messages later, the visibility timeout may be over, and other processes may
 * have the messages.
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
