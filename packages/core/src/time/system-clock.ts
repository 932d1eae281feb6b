import { AlarmHeap } from './alarm-heap.ts';
import type { Clock, Random } from './clock.ts';

/** The longest delay of `setTimeout`, in ms. A timer with a longer delay would fire immediately. */
const hostTimerMaxMs = 2 ** 31 - 1;

/** If a timer fires more than this many ms late, the thread was busy. */
const lateMs = 1;

/**
 * The clock of the system. All alarms share one `setTimeout` timer, which runs only while an alarm is set.
 */
export const systemClock: Clock = /* @__PURE__ */ createSystemClock();

/** Calls `callback` when pending I/O events have been handled. */
export function later(callback: () => void): void {
  ((globalThis as { setImmediate?: typeof queueMicrotask }).setImmediate ?? setTimeout)(callback);
}

/** Random numbers from `Math.random`. Do not use them for secrets. */
export const systemRandom: Random = () => Math.random();

function createSystemClock(): Clock {
  let alarms: AlarmHeap;
  let host: unknown;
  // `performance` is stored here, because it is a getter of the global object and therefore slow to read.
  let watch: { now(): number };
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wakeAt: number;
  let checksLater: boolean;
  let waitsForIo: boolean;

  /** Resets the clock. Called at first use, and when a test has installed or removed fake timers. */
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
    // The delay must not be negative, because some platforms warn about negative delays.
    timer = first && setTimeout(wake, Math.max(0, Math.min(Math.ceil(wakeAt - now()), hostTimerMaxMs)));
  }

  function wake(): void {
    const rungAt = now();
    // The thread was busy, so this timer is late. Pending I/O is handled first: it may contain answers of
    // calls that would otherwise time out.
    if (rungAt - wakeAt > lateMs && !waitsForIo) {
      waitsForIo = true;
      later(wake);
      return;
    }
    waitsForIo = false;
    // While `wakeAt` is −1, `set` starts no timer for new alarms. After the loop, `arm` starts one timer for
    // all of them.
    wakeAt = -1;
    const { order } = alarms;
    try {
      // An alarm that is set during this loop rings at the next `wake`. Otherwise alarms that set new alarms
      // could block the thread.
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
      // Stopping and starting the timer for every call would be slow. So `stopIfIdle` checks once, after
      // pending I/O.
      if (timer && !checksLater && !alarms.size) {
        checksLater = true;
        later(stopIfIdle);
      }
    },
  };
}
