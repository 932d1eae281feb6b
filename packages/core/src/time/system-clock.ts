import { AlarmHeap } from './alarm-heap.ts';
import type { Clock, Random } from './clock.ts';

/** The longest delay of a host timer. With a longer delay, hosts fire the timer immediately. */
const hostTimerMaxMs = 2 ** 31 - 1;

/** A host timer that fires more than this late was delayed by a busy thread. */
const lateMs = 1;

/**
 * Real time. All alarms share one host timer, which runs only while an alarm is set. So a process with alarms is kept
 * alive, and one without alarms has no timer.
 */
export const systemClock: Clock = /* @__PURE__ */ createSystemClock();

/** Calls `callback` after pending I/O events, so that code which runs on promises alone does not block these events. */
export function later(callback: () => void): void {
  ((globalThis as { setImmediate?: typeof queueMicrotask }).setImmediate ?? setTimeout)(callback);
}

export const systemRandom: Random = () => Math.random();

function createSystemClock(): Clock {
  let alarms: AlarmHeap;
  let host: unknown;
  // The object `performance` is stored, because it is a getter of the global object: reading it costs a third of
  // `now()` itself.
  let watch: { now(): number };
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wakeAt: number;
  let checksLater: boolean;
  let waitsForIo: boolean;

  /**
   * Resets everything: at first use, and when a test installs or removes fake timers, because then the old timer never
   * fires.
   */
  function adopt(): void {
    host = setTimeout;
    watch = performance;
    alarms = new AlarmHeap();
    timer = undefined;
    wakeAt = Infinity;
    checksLater = waitsForIo = false;
  }

  function now(): number {
    if (host !== setTimeout) adopt();
    return watch.now();
  }

  function arm(): void {
    clearTimeout(timer);
    const { first } = alarms;
    wakeAt = first ? first.at : Infinity;
    // The delay is at least 0, because some hosts warn about negative delays.
    timer = first && setTimeout(wake, Math.max(0, Math.min(Math.ceil(wakeAt - now()), hostTimerMaxMs)));
  }

  function wake(): void {
    const rungAt = now();
    // The thread was busy. Pending I/O goes first, because otherwise calls would time out whose answers have already
    // arrived.
    if (rungAt - wakeAt > lateMs && !waitsForIo) {
      waitsForIo = true;
      later(wake);
      return;
    }
    waitsForIo = false;
    // Alarms may set other alarms. −1 prevents `set` from starting the host timer for each alarm; `arm` below starts it
    // once.
    wakeAt = -1;
    const { order } = alarms;
    try {
      // An alarm that is set during this loop waits for the next wake, so that it cannot block the thread.
      for (let { first } = alarms; first && first.at <= rungAt && first.order <= order; { first } = alarms) {
        alarms.clear(first);
        first.ring(rungAt);
      }
    } finally {
      arm();
    }
  }

  function stopIfIdle(): void {
    checksLater = false;
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
      // Stopping the timer with the last alarm and starting it with the next one would slow down every single call. One
      // check after pending I/O is enough for a whole burst of calls.
      if (timer && !checksLater && !alarms.size) {
        checksLater = true;
        later(stopIfIdle);
      }
    },
  };
}
