import type { Alarm } from './clock.ts';

/** Holds any number of alarms for one host timer: setting and clearing one costs the same however many wait. */
export interface Wheel {
  /**
   * Rings `alarm` when `advance` reaches `at`: never early, at most a tick (1 ms) late. Moves one that is set already.
   * One set to a time that `advance` has reached counts as set to the next tick.
   */
  set(alarm: Alarm, at: number): void;
  /** Forgets `alarm`; harmless when it is not set. */
  clear(alarm: Alarm): void;
  /**
   * Rings what is due by `now`, by time and then in the order of setting. Does nothing when `now` is before the last
   * one, nor when called by an alarm.
   * What is set meanwhile waits for another call, so that an alarm which sets itself anew cannot hold the thread.
   * When alarms throw, the others still ring and the errors are thrown at the end.
   */
  advance(now: number): void;
  /** When to call `advance` next: never later than the first alarm wants, and `Infinity` when there is none. */
  nextAt(): number;
}

/** Levels of 32 slots, a slot as wide as the whole level below: 2^35 ticks are 397 days; what is beyond has a list. */
const LEVELS = 7;
const SPANS = /* @__PURE__ */ Array.from({ length: LEVELS + 1 }, (_, level) => 32 ** level);

/**
 * A hierarchical timing wheel. An alarm is on the lowest level whose current turn contains it, and a slot is emptied
 * into the levels below as the hand enters it. Therefore alarms of one tick share a slot, in the order of setting,
 * and the first slot in use of the lowest level in use is always the next one.
 */
export function timerWheel(start: number): Wheel {
  const slots = Array.from({ length: 32 * LEVELS + 1 }, newList);
  /** A bit for each slot that may hold alarms. Clearing an alarm leaves it on, `findNext` turns it off. */
  const used = new Int32Array(LEVELS + 1);
  /** The tick at which the current turn of each level began; for the list beyond, the one where the last turn ends. */
  const turns = new Float64Array(LEVELS + 1);
  let lastTick = Math.floor(start);
  let ringing = false;
  let nextLevel = 0;
  let nextSlot = 0;
  moveHand(lastTick);

  function moveHand(tick: number): void {
    for (let level = 0; level < LEVELS; level++) {
      turns[level] = Math.floor(tick / SPANS[level + 1]!) * SPANS[level + 1]!;
    }
    turns[LEVELS] = turns[LEVELS - 1]! + SPANS[LEVELS]!;
  }

  function place(alarm: Alarm): void {
    const tick = Math.ceil(alarm.at);
    let level = 0;
    while (level < LEVELS && tick >= turns[level]! + SPANS[level + 1]!) level++;
    const slot = level < LEVELS ? ((tick - turns[level]!) / SPANS[level]!) | 0 : 0;
    used[level]! |= 1 << slot;
    const list = slots[level * 32 + slot]!;
    link(list.previous!, alarm);
    link(alarm, list);
  }

  /** The tick at which the next slot in use begins; leaves its place in `nextLevel` and `nextSlot`. */
  function findNext(): number {
    for (nextLevel = 0; nextLevel <= LEVELS; nextLevel++) {
      for (let bits = used[nextLevel]!; bits !== 0; bits = used[nextLevel]! &= bits - 1) {
        nextSlot = 31 - Math.clz32(bits & -bits);
        const list = slots[nextLevel * 32 + nextSlot]!;
        if (list.next !== list) return turns[nextLevel]! + nextSlot * SPANS[nextLevel]!;
      }
    }
    return Infinity;
  }

  return {
    set(alarm, at) {
      unlink(alarm);
      // Compared so that NaN is overdue: rung at once rather than never.
      alarm.at = at > lastTick ? at : lastTick + 1;
      place(alarm);
    },

    clear: unlink,

    advance(now) {
      const tick = Math.floor(now);
      if (ringing || !(tick > lastTick)) return;
      ringing = true;
      lastTick = tick;
      const errors: unknown[] = [];
      for (let next = findNext(); next <= tick; next = findNext()) {
        moveHand(next);
        const list = slots[nextLevel * 32 + nextSlot]!;
        const alarms: Alarm[] = [];
        for (let alarm = list.next!; alarm !== list; alarm = alarm.next!) alarms.push(alarm);
        const falls = nextLevel > 0;
        if (!falls) alarms.sort((a, b) => a.at - b.at);
        for (const alarm of alarms) {
          // An alarm that rang before it may have cleared it, or set it to a time after this tick.
          if (alarm.previous === undefined || (alarm.at > tick && !falls)) continue;
          unlink(alarm);
          try {
            if (falls) place(alarm);
            else alarm.ring(now);
          } catch (error) {
            errors.push(error);
          }
        }
      }
      moveHand(tick);
      ringing = false;
      if (errors.length > 0) throw errors.length > 1 ? new AggregateError(errors) : errors[0];
    },

    nextAt: findNext,
  };
}

/** A ring closed by a node that never rings. It has an alarm's shape from the start, which keeps links fast. */
function newList(): Alarm {
  const list: Alarm = { at: 0, previous: undefined, next: undefined, ring() {} };
  link(list, list);
  return list;
}

function link(previous: Alarm, next: Alarm): void {
  previous.next = next;
  next.previous = previous;
}

function unlink(alarm: Alarm): void {
  if (alarm.previous === undefined) return;
  link(alarm.previous, alarm.next!);
  alarm.previous = alarm.next = undefined;
}
