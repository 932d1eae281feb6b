import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Clock } from 'holdfast';
import type { MonotonicClock } from './monotonic-clock.ts';

/** What time it is: `now` by the store's clock, `wall` by the machine's. */
export interface Time {
  readonly now: number;
  readonly wall: number;
}

/**
 * Where store time was at a moment of the machine's monotonic clock, and how far behind wall time. What it is later follows from this
 * alone, so that all processes agree without asking each other, and whatever their wall clocks say.
 */
interface Anchor {
  readonly bootId: string;
  readonly monotonicMs: number;
  readonly storeMs: number;
  readonly behindMs: number;
}

/** Nobody renews an anchor before this age: a younger one that is known is the one in the file, and need not be read again. */
const renewMs = 1000;

/** The part of the time passed by which store time may gain or lose, to come nearer to wall time. */
const slewMax = 0.1;

/**
 * The store's time: epoch milliseconds that cannot be set. It passes as the machine's monotonic clock does, nears wall time by at most
 * a tenth of the time passed, and never goes back. Only a restart of the machine makes it believe the wall clock.
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

  /** For those who only read. */
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

  /** The transaction was undone, and perhaps an anchor with it. */
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

/** Without an anchor of this boot nothing is known but the wall clock, and what it has been in the store already. */
function storeTimeAt(anchor: Anchor | undefined, bootId: string, monotonicMs: number, wall: number): number {
  if (!anchor) return wall;
  const sinceMs = monotonicMs - anchor.monotonicMs;
  if (anchor.bootId !== bootId || sinceMs < -renewMs) return Math.max(wall, anchor.storeMs);
  // Below 0 for a moment: another process has renewed it after this one looked at the clock.
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
