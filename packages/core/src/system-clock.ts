import { AlarmHeap } from './alarm-heap.ts';
import type { Clock, Random } from './clock.ts';

/** The longest time a host timer can take; beyond it, hosts fire at once. */
const hostTimerMaxMs = 2 ** 31 - 1;

/**
 * Real time. All alarms share one host timer, which runs only while an alarm is set: an idle process neither ticks
 * nor is kept alive, and a waiting one is.
 */
export const systemClock: Clock = /* @__PURE__ */ createSystemClock();

export const systemRandom: Random = () => Math.random();

function createSystemClock(): Clock {
  let alarms = new AlarmHeap();
  let host: unknown;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wakeAt = Infinity;
  let looksLater = false;

  function arm(): void {
    clearTimeout(timer);
    const { first } = alarms;
    wakeAt = first ? first.at : Infinity;
    timer = first && setTimeout(wake, Math.min(Math.ceil(wakeAt - performance.now()), hostTimerMaxMs));
  }

  function wake(): void {
    // Whatever the alarms set, one arming at the end covers it.
    wakeAt = -1;
    const now = performance.now();
    const { order } = alarms;
    try {
      // One that sets itself anew is left for the next time, so that it cannot hold the thread.
      for (let { first } = alarms; first && first.at <= now && first.order <= order; { first } = alarms) {
        alarms.clear(first);
        first.ring(now);
      }
    } finally {
      arm();
    }
  }

  function look(): void {
    looksLater = false;
    if (!alarms.size) arm();
  }

  return {
    now: () => performance.now(),
    epochMs: () => Date.now(),

    set(alarm, at) {
      // A test has put fake timers in place of the host's, or put those back: what the others armed never fires.
      if (host !== setTimeout) {
        host = setTimeout;
        alarms = new AlarmHeap();
        timer = undefined;
        wakeAt = Infinity;
        looksLater = false;
      }
      alarms.set(alarm, at);
      if (alarm.at < wakeAt) arm();
    },

    clear(alarm) {
      alarms.clear(alarm);
      // Stopping the timer with the last alarm and starting it with the next would cost each lone call both;
      // a look once the thread is free costs a burst of calls nothing.
      if (timer && !looksLater && !alarms.size) {
        looksLater = true;
        ((globalThis as { setImmediate?: typeof queueMicrotask }).setImmediate ?? setTimeout)(look);
      }
    },
  };
}
