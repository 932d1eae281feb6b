import { type Duration, durationMs } from '../policy/duration.ts';
import { OptionsError } from '../report/errors.ts';
import { AlarmHeap } from '../time/alarm-heap.ts';
import type { Clock } from '../time/clock.ts';

/** A clock that moves only with `advance` and `runAll`. */
export interface VirtualClock extends Clock {
  /** The number of alarms that are set and have not rung yet. */
  readonly pendingTimers: number;
  /**
   * Moves the time forward and rings the alarms that are due, in order. After each alarm, all pending promise
   * callbacks run. If an alarm throws, the other alarms still ring, and the error is thrown at the end.
   */
  advance(duration: Duration): Promise<void>;
  /** Moves the time to the last alarm, including alarms that are set meanwhile. */
  runAll(): Promise<void>;
}

/** The start values of a virtual clock, in ms. */
export interface VirtualClockOptions {
  /** The first value of `now`, in ms. Default: `0`. */
  readonly now?: number;
  /** The first value of `epochMs`. Default: the start of 2026. */
  readonly epochMs?: number;
}

/**
 * If more alarms than this ring without the time moving, the clock throws. Otherwise an endless loop would
 * hang the test.
 */
const ringsAtOnceMax = 1_000_000;

/** Makes a clock for tests. Its time does not move until `advance` or `runAll` is called. */
export function virtualClock(options: VirtualClockOptions = {}): VirtualClock {
  const alarms = new AlarmHeap();
  let now = options.now ?? 0;
  const epochOffset = (options.epochMs ?? Date.UTC(2026, 0, 1)) - now;
  let moving: Promise<void> = Promise.resolve();

  async function moveTo(end: number): Promise<void> {
    const errors: unknown[] = [];
    let rings = 0;
    await settled();
    for (let { first } = alarms; first && first.at <= end && first.at < Infinity; { first } = alarms) {
      rings = first.at > now ? 0 : rings + 1;
      if (rings > ringsAtOnceMax) throw new Error(`more than ${ringsAtOnceMax} alarms rang at ${now} ms`);
      now = Math.max(now, first.at);
      alarms.clear(first);
      try {
        first.ring(now);
      } catch (error) {
        errors.push(error);
      }
      await settled();
    }
    if (end < Infinity) now = Math.max(now, end);
    if (errors.length > 0) throw errors.length > 1 ? new AggregateError(errors) : errors[0];
  }

  function move(end: () => number): Promise<void> {
    const moved = moving.then(() => moveTo(end()));
    moving = moved.catch(() => {});
    return moved;
  }

  return {
    now: () => now,
    epochMs: () => Math.floor(epochOffset + now),

    set(alarm, at) {
      // An alarm without a valid time (NaN) rings immediately.
      alarms.set(alarm, at > now ? at : now);
    },

    clear: (alarm) => alarms.clear(alarm),

    get pendingTimers() {
      return alarms.size;
    },

    advance(duration) {
      const ms = durationMs(duration);
      if (ms === Infinity) throw new OptionsError('duration', duration, 'a finite duration');
      // The time is rounded to microseconds, so that ten steps of 0.1 ms reach an alarm at 1 ms exactly.
      return move(() => Math.round((now + ms) * 1000) / 1000);
    },

    runAll: () => move(() => Infinity),
  };
}

/** Resolves when no promise callback is left to run, however long the chain of promises is. */
function settled(): Promise<void> {
  const { process } = globalThis as { process?: { nextTick?: (task: () => void) => void } };
  return new Promise((resolve) => {
    // `nextTick` inside a microtask calls `resolve` when no microtask is left, so after all promise
    // callbacks.
    if (process?.nextTick) queueMicrotask(() => process.nextTick!(resolve));
    else {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        resolve();
      };
      port2.postMessage(0);
    }
  });
}
