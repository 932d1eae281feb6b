import { type AbortListener, offAbort, onAbort } from './abort-listeners.ts';
import { Alarm, type Clock } from './clock.ts';

/** Calls a function at a given time. The timer can be set again, even by the function itself. */
export class Timer extends Alarm {
  readonly #clock: Clock;
  readonly #callback: (now: number) => void;

  constructor(clock: Clock, callback: (now: number) => void) {
    super();
    this.#clock = clock;
    this.#callback = callback;
  }

  get isSet(): boolean {
    return this.index >= 0;
  }

  /** Sets when the function is called, on the scale of `Clock.now`. Replaces an earlier time. */
  setAt(at: number): void {
    this.#clock.set(this, at);
  }

  setIn(ms: number): void {
    this.#clock.set(this, this.#clock.now() + ms);
  }

  clear(): void {
    this.#clock.clear(this);
  }

  ring(now: number): void {
    this.#callback(now);
  }
}

/** Resolves after `ms`. If `signal` aborts before that, it rejects with the reason of the signal. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = new Timer(clock, () => {
      if (signal) offAbort(signal, listener);
      resolve();
    });
    const listener: AbortListener = {
      aborted(reason) {
        timer.clear();
        offAbort(signal!, listener);
        reject(reason);
      },
    };
    if (signal) onAbort(signal, listener);
    timer.setIn(ms);
  });
}
