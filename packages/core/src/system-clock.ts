import type { Clock, Random } from './clock.ts';
import { timerWheel } from './wheel.ts';

/** The longest time a host timer can take; beyond it, hosts fire at once. */
const HOST_TIMER_MAX_MS = 2 ** 31 - 1;

/**
 * Real time. All alarms share one host timer, which runs only while an alarm is set: an idle process neither ticks
 * nor is kept alive, and a waiting one is.
 */
export const systemClock: Clock = /* @__PURE__ */ createSystemClock();

export const systemRandom: Random = () => Math.random();

function createSystemClock(): Clock {
  let wheel = timerWheel(0);
  let host: unknown;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wakeAt = Infinity;
  let checksIdle = false;

  function arm(at: number): void {
    clearTimeout(timer);
    wakeAt = Math.ceil(at);
    timer =
      at < Infinity
        ? setTimeout(wake, Math.min(Math.ceil(wakeAt - performance.now()), HOST_TIMER_MAX_MS))
        : undefined;
  }

  function wake(): void {
    // Whatever the alarms set, one arming at the end covers it.
    wakeAt = -Infinity;
    try {
      wheel.advance(performance.now());
    } finally {
      arm(wheel.nextAt());
    }
  }

  function stopWhenIdle(): void {
    checksIdle = false;
    if (wheel.nextAt() === Infinity) arm(Infinity);
  }

  return {
    now: () => performance.now(),
    epochMs: () => Date.now(),

    set(alarm, at) {
      // A test has put fake timers in place of the host's, or put those back: what the others armed never fires.
      if (host !== setTimeout) {
        host = setTimeout;
        wheel = timerWheel(0);
        timer = undefined;
        wakeAt = Infinity;
        checksIdle = false;
      }
      wheel.set(alarm, at);
      if (alarm.at < wakeAt) arm(alarm.at);
    },

    clear(alarm) {
      wheel.clear(alarm);
      // Stopping the timer with the last alarm and starting it with the next would cost each lone call both;
      // a look once the thread is free costs a burst of calls nothing.
      if (timer !== undefined && !checksIdle && wheel.nextAt() === Infinity) {
        checksIdle = true;
        const { setImmediate } = globalThis as { setImmediate?: (task: () => void) => unknown };
        (setImmediate ?? setTimeout)(stopWhenIdle);
      }
    },
  };
}
