import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type Clock, systemClock, systemRandom } from 'holdfast';
import { systemMonotonicClock } from './system-monotonic-clock.ts';

/**
 * A clock that nobody can set. Two clocks with the same `bootId` must agree on `now`: all processes of one machine use it
 * to agree on the time.
 */
export interface MonotonicClock {
  /** Identifies the restart of the machine since which `now` counts. */
  readonly bootId: string;
  /** Milliseconds with a fraction. The value never goes back. */
  now(): number;
}

/** The current time: `now` by the store's clock, `wall` by the machine's; both epoch ms. */
export interface Time {
  readonly now: number;
  readonly wall: number;
}

/**
 * Store time at one reading of the machine's monotonic clock, and how far it was behind wall time. Later store times follow from this
 * alone: all processes agree on them, whatever their wall clocks show.
 */
interface Anchor {
  readonly bootId: string;
  readonly monotonicMs: number;
  readonly storeMs: number;
  readonly behindMs: number;
}

/** No process renews an anchor before this age: a younger one in memory is the one in the file, and need not be read again. */
const renewMs = 1000;

/** Store time runs at most this much faster or slower than the monotonic clock, until it agrees with wall time. */
const slewMax = 0.1;

/**
 * The store's time: epoch milliseconds that cannot be set. It passes as the machine's monotonic clock does, approaches wall time by at
 * most a tenth of the time passed, and never goes back. Only after a restart of the machine does it follow the wall clock.
 */
export class StoreClock {
  readonly #clock: Clock;
  readonly #monotonic: MonotonicClock;
  readonly #read: StatementSync;
  readonly #write: StatementSync;
  #anchor: Anchor | undefined;

  constructor(database: DatabaseSync, clock: Clock, monotonic: MonotonicClock) {
    this.#clock = clock;
    this.#monotonic = monotonic;
    this.#read = database.prepare('SELECT boot_id, monotonic_ms, store_ms, behind_ms FROM holdfast_clock');
    this.#write = database.prepare('INSERT OR REPLACE INTO holdfast_clock VALUES (1, ?, ?, ?, ?)');
  }

  /** For reads. */
  read(): Time {
    const monotonicMs = this.#monotonic.now();
    const wall = this.#clock.epochMs();
    return { now: Math.floor(this.#storeMs(monotonicMs, wall)), wall };
  }

  /** Within a transaction that writes: renews the anchor once a second. */
  tick(): Time {
    const monotonicMs = this.#monotonic.now();
    const wall = this.#clock.epochMs();
    const storeMs = this.#storeMs(monotonicMs, wall);
    if (!this.#isYoung(monotonicMs)) {
      const { bootId } = this.#monotonic;
      this.#anchor = { bootId, monotonicMs, storeMs, behindMs: wall - storeMs };
      this.#write.run(bootId, monotonicMs, storeMs, wall - storeMs);
    }
    return { now: Math.floor(storeMs), wall };
  }

  /** After a rollback: the anchor may not be in the file. */
  forget(): void {
    this.#anchor = undefined;
  }

  #storeMs(monotonicMs: number, wall: number): number {
    if (!this.#isYoung(monotonicMs)) this.#anchor = toAnchor(this.#read.get());
    return storeTimeAt(this.#anchor, this.#monotonic.bootId, monotonicMs, wall);
  }

  #isYoung(monotonicMs: number): boolean {
    const anchor = this.#anchor;
    if (anchor?.bootId !== this.#monotonic.bootId) return false;
    const ageMs = monotonicMs - anchor.monotonicMs;
    return ageMs >= 0 && ageMs < renewMs;
  }
}

const clocksGiven = new WeakMap<Clock, MonotonicClock>();

/**
 * Returns the machine's monotonic clock for the system clock. Any other clock (a virtual clock in a test) means nothing to
 * other processes, so it gets a boot id of its own: engines that share the clock in one process agree on the time.
 */
export function monotonicClockOf(clock: Clock): MonotonicClock {
  if (clock === systemClock) return systemMonotonicClock();
  const known = clocksGiven.get(clock) ?? { bootId: `given ${systemRandom()}`, now: () => clock.now() };
  clocksGiven.set(clock, known);
  return known;
}

/** Without an anchor of this boot: the wall clock, but never before the last stored time. */
function storeTimeAt(anchor: Anchor | undefined, bootId: string, monotonicMs: number, wall: number): number {
  if (!anchor) return wall;
  const sinceMs = monotonicMs - anchor.monotonicMs;
  if (anchor.bootId !== bootId || sinceMs < -renewMs) return Math.max(wall, anchor.storeMs);
  // Below 0 if another process has renewed the anchor after this one read the clock.
  const passedMs = Math.max(0, sinceMs);
  const slewMs = passedMs * slewMax;
  return anchor.storeMs + passedMs + Math.min(slewMs, Math.max(-slewMs, anchor.behindMs));
}

function toAnchor(row: Record<string, unknown> | undefined): Anchor | undefined {
  return (
    row && {
      bootId: String(row.boot_id),
      monotonicMs: Number(row.monotonic_ms),
      storeMs: Number(row.store_ms),
      behindMs: Number(row.behind_ms),
    }
  );
}
