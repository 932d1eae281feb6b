import { type Duration, durationMs } from '../policy/duration.ts';
import { OptionsError } from '../report/errors.ts';
import { AlarmHeap } from '../time/alarm-heap.ts';
import type { Clock } from '../time/clock.ts';

/** Time that moves only when told to. The same calls give the same order, however many waits run at once. */
export interface VirtualClock extends Clock {
  /** Alarms that are set and have not rung. */
  readonly pendingTimers: number;
  /**
   * Moves time on, ringing what falls due by time and then in the order of setting. Everything that promises set in
   * motion has settled before the next alarm rings, also between alarms of the same time, and before this resolves.
   * When alarms throw, the others still ring and the errors are thrown at the end.
   */
  advance(duration: Duration): Promise<void>;
  /** Moves time to the last alarm, those set on the way included. */
  runAll(): Promise<void>;
}

export interface VirtualClockOptions {
  /** What `now` says at first; 0 unless given. */
  readonly now?: number;
  /** What `epochMs` says at first; the start of 2026 unless given. */
  readonly epochMs?: number;
}

/** Alarms rung without a step in time before that is taken for an alarm that sets itself for ever. */
const ringsAtOnceMax = 1_000_000;

/** A clock for tests: starts still, and is moved with `advance`. */
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

  /** One after the other: moves that were asked for at the same time must not overtake each other. */
  function move(end: () => number): Promise<void> {
    const moved = moving.then(() => moveTo(end()));
    moving = moved.catch(() => {});
    return moved;
  }

  return {
    now: () => now,
    epochMs: () => Math.floor(epochOffset + now),

    set(alarm, at) {
      // Compared so that NaN is overdue, as on the system clock.
      alarms.set(alarm, at > now ? at : now);
    },

    clear: (alarm) => alarms.clear(alarm),

    get pendingTimers() {
      return alarms.size;
    },

    advance(duration) {
      const ms = durationMs(duration);
      if (ms === Infinity) throw new OptionsError('duration', duration, 'a finite duration');
      // Whole microseconds: steps of 0.1 ms must meet an alarm set to their sum.
      return move(() => Math.round((now + ms) * 1000) / 1000);
    },

    runAll: () => move(() => Infinity),
  };
}

/** Resolves when no promise continuation is left to run, however long their chain. */
function settled(): Promise<void> {
  const { process } = globalThis as { process?: { nextTick?: (task: () => void) => void } };
  return new Promise((resolve) => {
    // Node looks at its tick queue only when the microtask queue is empty, so a tick asked for by a microtask comes
    // after all of them. A number of hops, or a tick asked for directly, would be overtaken by a longer chain.
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
