import type { Alarm, Clock } from '../clock.ts';
import { type Duration, durationMs } from '../duration.ts';

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

interface Entry {
  readonly alarm: Alarm;
  readonly at: number;
  readonly sequence: number;
  index: number;
}

/** A clock for tests: starts still, and is moved with `advance`. */
export function virtualClock(options: VirtualClockOptions = {}): VirtualClock {
  const heap: Entry[] = [];
  const entries = new Map<Alarm, Entry>();
  let now = options.now ?? 0;
  const epochOffset = (options.epochMs ?? Date.UTC(2026, 0, 1)) - now;
  let sequence = 0;
  let moving: Promise<void> = Promise.resolve();

  function clear(alarm: Alarm): void {
    const entry = entries.get(alarm);
    if (entry === undefined) return;
    entries.delete(alarm);
    alarm.previous = alarm.next = undefined;
    const last = heap.pop()!;
    if (last === entry) return;
    put(last, entry.index);
    sink(last);
    rise(last);
  }

  function put(entry: Entry, index: number): void {
    entry.index = index;
    heap[index] = entry;
  }

  function rise(entry: Entry): void {
    while (entry.index > 0) {
      const parent = heap[(entry.index - 1) >> 1]!;
      if (isBefore(parent, entry)) return;
      swap(parent, entry);
    }
  }

  function sink(entry: Entry): void {
    for (;;) {
      const left = heap[entry.index * 2 + 1];
      const right = heap[entry.index * 2 + 2];
      const first = left && right && isBefore(right, left) ? right : left;
      if (first === undefined || isBefore(entry, first)) return;
      swap(entry, first);
    }
  }

  function swap(a: Entry, b: Entry): void {
    const { index } = a;
    put(a, b.index);
    put(b, index);
  }

  async function moveTo(end: number): Promise<void> {
    const errors: unknown[] = [];
    let rings = 0;
    await settled();
    for (let entry = heap[0]; entry && entry.at <= end && entry.at < Infinity; entry = heap[0]) {
      rings = entry.at > now ? 0 : rings + 1;
      if (rings > ringsAtOnceMax) throw new Error(`more than ${ringsAtOnceMax} alarms rang at ${now} ms`);
      now = Math.max(now, entry.at);
      clear(entry.alarm);
      try {
        entry.alarm.ring(now);
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
      clear(alarm);
      // Compared so that NaN is overdue, as on the system clock.
      alarm.at = at > now ? at : now;
      // Linked to itself: an alarm that is set can be told by its links on every clock.
      alarm.previous = alarm.next = alarm;
      const entry: Entry = { alarm, at: alarm.at, sequence: sequence++, index: heap.length };
      entries.set(alarm, entry);
      heap.push(entry);
      rise(entry);
    },

    clear,

    get pendingTimers() {
      return heap.length;
    },

    advance(duration) {
      const ms = durationMs(duration);
      if (!(ms >= 0 && ms < Infinity))
        throw new RangeError(`time goes forward, by a finite duration, not by ${duration}`);
      // Whole microseconds: steps of 0.1 ms must meet an alarm set to their sum.
      return move(() => Math.round((now + ms) * 1000) / 1000);
    },

    runAll: () => move(() => Infinity),
  };
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.sequence < b.sequence);
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
