import { AlarmHeap } from './alarm-heap.ts';
import type { Clock, Random } from './clock.ts';

/** The longest time a host timer can take; beyond it, hosts fire at once. */
const hostTimerMaxMs = 2 ** 31 - 1;

/** A timer that is later than this was held up by a busy thread. */
const lateMs = 1;

/**
 * Real time. All alarms share one host timer, which runs only while an alarm is set: an idle process neither ticks
 * nor is kept alive, and a waiting one is.
 */
export const systemClock: Clock = /* @__PURE__ */ createSystemClock();

/** When the thread is free, and what has arrived has been heard: for those who could otherwise hold it with promises alone. */
export function later(callback: () => void): void {
  ((globalThis as { setImmediate?: typeof queueMicrotask }).setImmediate ?? setTimeout)(callback);
}

export const systemRandom: Random = () => Math.random();

function createSystemClock(): Clock {
  let alarms: AlarmHeap;
  let host: unknown;
  // Looked up once: on the global object it is a getter, which costs a third of the reading itself.
  let watch: { now(): number };
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wakeAt: number;
  let looksLater: boolean;
  let waitsForNews: boolean;

  /** At first, and when a test puts fake timers in place of the host's or puts those back: what was armed never fires. */
  function adopt(): void {
    host = setTimeout;
    watch = performance;
    alarms = new AlarmHeap();
    timer = undefined;
    wakeAt = Infinity;
    looksLater = waitsForNews = false;
  }

  function now(): number {
    if (host !== setTimeout) adopt();
    return watch.now();
  }

  function arm(): void {
    clearTimeout(timer);
    const { first } = alarms;
    wakeAt = first ? first.at : Infinity;
    // A time that has passed is no host's idea of a delay: some warn.
    timer = first && setTimeout(wake, Math.max(0, Math.min(Math.ceil(wakeAt - now()), hostTimerMaxMs)));
  }

  function wake(): void {
    const rungAt = now();
    // The thread was busy. What has arrived meanwhile is heard first, or calls would be given up that are answered.
    if (rungAt - wakeAt > lateMs && !waitsForNews) {
      waitsForNews = true;
      later(wake);
      return;
    }
    waitsForNews = false;
    // Whatever the alarms set, one arming at the end covers it.
    wakeAt = -1;
    const { order } = alarms;
    try {
      // One that sets itself anew is left for the next time, so that it cannot hold the thread.
      for (let { first } = alarms; first && first.at <= rungAt && first.order <= order; { first } = alarms) {
        alarms.clear(first);
        first.ring(rungAt);
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
    now,
    epochMs: () => Date.now(),

    set(alarm, at) {
      if (host !== setTimeout) adopt();
      alarms.set(alarm, at);
      if (alarm.at < wakeAt) arm();
    },

    clear(alarm) {
      alarms?.clear(alarm);
      // Stopping the timer with the last alarm and starting it with the next would cost each lone call both;
      // a look once the thread is free costs a burst of calls nothing.
      if (timer && !looksLater && !alarms.size) {
        looksLater = true;
        later(look);
      }
    },
  };
}
