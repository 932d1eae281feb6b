import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type Clock, systemClock, systemRandom } from 'holdfast';
import { systemMonotonicClock } from './system-monotonic-clock.ts';

/**
 * A clock that nobody can set. Two clocks with the same `bootId` must agree on `now`: in this way all processes of one
 * machine agree on the time.
 */
export interface MonotonicClock {
  /** Identifies the restart of the machine since which `now` counts. */
  readonly bootId: string;
  /** Milliseconds with a fraction. The value never goes back. */
  now(): number;
}

/** The current time in epoch ms: `now` by the store's clock, `wall` by the machine's clock. */
export interface Time {
  readonly now: number;
  readonly wall: number;
}

/**
 * An anchor stores one reading of the machine's monotonic clock, the store time at that moment, and how far store time
 * was behind wall time. Every later store time is computed from an anchor alone, so all processes agree on it even if
 * their wall clocks differ.
 */
interface Anchor {
  readonly bootId: string;
  readonly monotonicMs: number;
  readonly storeMs: number;
  readonly behindMs: number;
}

/**
 * No process writes a new anchor before the old one has this age (ms). So a younger anchor in memory is still the one
 * in the file, and need not be read again.
 */
const renewMs = 1000;

/** Store time runs at most 10 % faster or slower than the monotonic clock, until it agrees with wall time. */
const slewMax = 0.1;

/**
 * The store's clock, in epoch milliseconds, which nobody can set. It runs like the machine's monotonic clock,
 * approaches wall time by at most a tenth of the elapsed time, and never goes back. Only after a restart of the machine
 * does it take over the wall time.
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

  /** Returns the time without writing an anchor. */
  read(): Time {
    const monotonicMs = this.#monotonic.now();
    const wall = this.#clock.epochMs();
    return { now: Math.floor(this.#storeMs(monotonicMs, wall)), wall };
  }

  /** Returns the time, and writes a new anchor once a second. Call it within a transaction that writes. */
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

  /** Forgets the anchor in memory. Call it after a rollback, because the anchor may not be in the file. */
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
 * Returns the machine's monotonic clock for the system clock. Any other clock (a virtual clock in a test) means nothing
 * to other processes, so it gets a boot id of its own. SQLite engines that share such a clock in one process agree on
 * the time.
 */
export function monotonicClockOf(clock: Clock): MonotonicClock {
  if (clock === systemClock) return systemMonotonicClock();
  const known = clocksGiven.get(clock) ?? { bootId: `given ${systemRandom()}`, now: () => clock.now() };
  clocksGiven.set(clock, known);
  return known;
}

/**
 * Computes the store time from the anchor. Without an anchor of this boot it is the wall time, but never before the
 * last stored time.
 */
function storeTimeAt(anchor: Anchor | undefined, bootId: string, monotonicMs: number, wall: number): number {
  if (!anchor) return wall;
  const sinceMs = monotonicMs - anchor.monotonicMs;
  if (anchor.bootId !== bootId || sinceMs < -renewMs) return Math.max(wall, anchor.storeMs);
  // `sinceMs` is below 0 if another process has written the anchor after this process read the monotonic clock.
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
