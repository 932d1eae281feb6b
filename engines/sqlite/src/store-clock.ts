import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type Clock, systemClock, systemRandom } from 'holdfast';
import { systemMonotonicClock } from './uptime.ts';

/** A clock that cannot be set. All clocks with the same `bootId` must show the same time. */
export interface MonotonicClock {
  /** Changes when the machine restarts. */
  readonly bootId: string;
  /** Milliseconds with a fraction. The value never goes back. */
  now(): number;
}

/** Two times in epoch ms: `now` is by the store's clock, `wall` is by the machine's clock. */
export interface Time {
  readonly now: number;
  readonly wall: number;
}

/**
 * One stored reading of the clocks. All processes compute the store's time from this reading, so all of them
 * get the same time.
 */
interface Anchor {
  readonly bootId: string;
  readonly monotonicMs: number;
  readonly storeMs: number;
  readonly behindMs: number;
}

/**
 * An anchor (a stored reading of the clocks) is used for this many ms. Processes replace it only when it is
 * older.
 */
const renewMs = 1000;

/**
 * While the store's time differs from the wall time, the store's clock runs at most this share faster or
 * slower than normal.
 */
const slewMax = 0.1;

/**
 * The clock of the store, in epoch ms. It runs like the monotonic clock, slowly approaches the wall time, and
 * never goes back.
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

  read(): Time {
    const monotonicMs = this.#monotonic.now();
    const wall = this.#clock.epochMs();
    return { now: Math.floor(this.#storeMs(monotonicMs, wall)), wall };
  }

  /** Returns the time, and stores a new anchor once a second. Call it within a transaction that writes. */
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

  /** Call it after a rollback, which may have undone the last write of the anchor. */
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
 * Returns the monotonic clock that belongs to `clock`. A virtual clock (of a test) gets its own boot id,
 * because other processes do not share it.
 */
export function monotonicClockOf(clock: Clock): MonotonicClock {
  if (clock === systemClock) return systemMonotonicClock();
  const known = clocksGiven.get(clock) ?? { bootId: `given ${systemRandom()}`, now: () => clock.now() };
  clocksGiven.set(clock, known);
  return known;
}

/**
 * Returns the store's time. After a restart of the machine it is the wall time, but never before the last
 * stored time.
 */
function storeTimeAt(anchor: Anchor | undefined, bootId: string, monotonicMs: number, wall: number): number {
  if (!anchor) return wall;
  const sinceMs = monotonicMs - anchor.monotonicMs;
  if (anchor.bootId !== bootId || sinceMs < -renewMs) return Math.max(wall, anchor.storeMs);
  // `sinceMs` is below 0 if another process wrote the anchor after this process read the clock.
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
