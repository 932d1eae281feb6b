import { AlarmHeap } from './alarm-heap.ts';
import type { Clock, Random } from './clock.ts';

/** The longest delay of a host timer. Hosts fire a timer with a longer delay immediately. */
const hostTimerMaxMs = 2 ** 31 - 1;

/** A timer that fires more than this too late was delayed by a busy thread. */
const lateMs = 1;

/** Real time. All alarms share one host timer, which runs only while an alarm is set. */
export const systemClock: Clock = /* @__PURE__ */ createSystemClock();

/** Calls `callback` after pending I/O events. */
export function later(callback: () => void): void {
  ((globalThis as { setImmediate?: typeof queueMicrotask }).setImmediate ?? setTimeout)(callback);
}

/** The chance of the host, `Math.random`. Not for secrets. */
export const systemRandom: Random = () => Math.random();

function createSystemClock(): Clock {
  let alarms: AlarmHeap;
  let host: unknown;
  // `performance` is stored, because it is a getter of the global object and slow to read.
  let watch: { now(): number };
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wakeAt: number;
  let checksLater: boolean;
  let waitsForIo: boolean;

  /** Resets everything at first use, and when a test installs or removes fake timers. */
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
    // The thread was busy. Pending I/O goes first, because it may contain the answers of calls that would time out.
    if (rungAt - wakeAt > lateMs && !waitsForIo) {
      waitsForIo = true;
      later(wake);
      return;
    }
    waitsForIo = false;
    // −1 prevents `set` from starting a host timer for each new alarm. `arm` starts one host timer afterwards.
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
      // Stopping and starting the timer for every call would be slow. One check after pending I/O is enough.
      if (timer && !checksLater && !alarms.size) {
        checksLater = true;
        later(stopIfIdle);
      }
    },
  };
}
