import type { Random } from '../time/clock.ts';
import { SlidingCounts } from './sliding-counts.ts';

/**
 * The state of a breaker. `closed`: all calls pass. `open`: no call passes. `half-open`: only a few trial
 * calls (probes) pass.
 */
export type BreakerState = 'closed' | 'open' | 'half-open';

/** Why a breaker changed its state. */
export type BreakerCause =
  | 'failure_ratio'
  | 'consecutive_failures'
  | 'slow_ratio'
  | 'probe_failed'
  | 'probe_expired'
  | 'probes_succeeded'
  | 'open_time_passed'
  | 'forced';

/** When a breaker opens and closes. Durations are in ms, and ratios are from 0 to 1. */
export interface BreakerSettings {
  /** The window is this time: older calls are not counted. */
  readonly windowMs: number;
  /**
   * Above 0: the window is the last `windowCalls` calls, however old they are. 0: the window is `windowMs`.
   */
  readonly windowCalls: number;
  /** With fewer calls than this in the window, `failureRatio` and `slowRatio` do not open the breaker. */
  readonly minimum: number;
  readonly failureRatio: number;
  /**
   * The breaker opens after this many failures in a row. With heavy traffic more failures are needed, because
   * a few failures in a row can be chance. 0: failures in a row do not open it.
   */
  readonly consecutive: number;
  /** A call that takes longer than this is slow. Infinity: no call is slow. */
  readonly slowOverMs: number;
  readonly slowRatio: number;
  /** The shortest and the longest time that the breaker stays open, before jitter. */
  readonly openForMs: readonly [least: number, most: number];
  /**
   * While half-open: the most trial calls (probes) in flight. The same number must succeed in a row to close
   * the breaker.
   */
  readonly probes: number;
}

/**
 * The saved state of a breaker, as plain JSON. Times are relative to the time of saving, so that another
 * process can restore it.
 */
export interface BreakerSnapshot {
  /**
   * A half-open breaker is saved as `open`. Its open time has passed, so it can send a probe (a trial call)
   * immediately after `restore`.
   */
  readonly state: 'closed' | 'open';
  readonly forced?: 'open' | 'closed' | undefined;
  readonly forcedBecause?: string | undefined;
  /**
   * The highest ticket (the number of an admitted call) so far. New tickets are higher, so that no ticket is
   * used twice.
   */
  readonly serial: number;
  readonly inARow: number;
  readonly counts: readonly number[];
  readonly failingForMs: number;
  readonly reopensInMs: number;
  /** Why the state last changed, and how many ms ago. Undefined if it never changed. */
  readonly cause?: BreakerCause | undefined;
  readonly changedForMs?: number | undefined;
}

const CALLS = 0;
const FAILURES = 1;
const SLOW = 2;
const FULL = 3;

/**
 * Used instead of a ticket (the number of an admitted call) when there is none. It is not −1, because `admit`
 * returns −1 for a refusal.
 */
const NONE = -2;

/**
 * With more traffic, more failures in a row are needed to open the breaker. Each doubling of the calls in the
 * window, above `minimum`, adds this many failures.
 */
const ROW_GROWTH = 2;
/**
 * Failures in a row open the breaker only if chance alone would cause them less often than this per window.
 */
const UNLIKELY = 0.01;

/** `slowOver` is called only for calls that took longer than this. */
const SLOW_MIN_MS = 1000;

/**
 * After this many refused calls, a probe (a trial call) may be sent early: as soon as the shortest open time
 * has passed.
 */
const REFUSALS_A_ROUND = 100;

/**
 * After this time at the latest, a probe (a trial call) without a result counts as failed. Otherwise a lost
 * probe could keep the breaker half-open forever.
 */
const LEASE_MAX_MS = 600_000;

/**
 * Stops calling a target that is failing. After a while it admits a few trial calls (probes), and closes
 * again when they succeed.
 *
 * Each admitted call gets a number, its ticket. A result with a ticket from before the last change of state
 * is ignored. All calls while closed share one ticket, so a call that never ends blocks nothing.
 *
 * An answer that the target is full counts for `consecutive`, but not for `failureRatio`. A full target still
 * serves other calls.
 *
 * The open time is a quarter of the time that the target has been failing, within `openForMs`. So the breaker
 * makes an outage at most a quarter longer. Jitter shortens the open time by at most half.
 *
 * There is no timer: each method first makes the changes of state that are due.
 */
export class Breaker {
  /** Called at each change of state. `at` is the time when the new state began. */
  onChange: ((from: BreakerState, to: BreakerState, because: BreakerCause, at: number) => void) | undefined =
    undefined;
  /**
   * Returns the ms above which a call is slow. If set, it replaces `slowOverMs` for calls that took longer
   * than 1 s.
   */
  slowOver: (() => number) | undefined = undefined;
  /**
   * How many calls and probes have succeeded. Results with an old ticket (from before a change of state) are
   * not counted.
   */
  succeeded = 0;
  /**
   * How many calls and probes (trial calls) have failed, including slow probes and probes without a result.
   */
  failed = 0;

  readonly #settings: BreakerSettings;
  readonly #random: Random;
  readonly #counts: SlidingCounts;
  #state: BreakerState = 'closed';
  #forced: 'open' | 'closed' | undefined = undefined;
  #forcedBecause: string | undefined = undefined;
  #changedAt = 0;
  #cause: BreakerCause | undefined = undefined;
  /** The ticket (number) that all calls share while the breaker is closed; NONE in the other states. */
  #ticket = 0;
  #serial = 0;
  #inARow = 0;
  #failingSince = 0;
  #openForMs = 0;
  #reopensAt = 0;
  /** The earliest time at which a probe (a trial call) may be sent, however many calls were refused. */
  #soonestAt = 0;
  #turnedAway = 0;
  #successes = 0;
  /**
   * The tickets (numbers) of the probes in flight, each with the time at which the probe counts as failed.
   */
  readonly #probes: Map<number, number> = new Map();

  constructor(settings: BreakerSettings, random: Random) {
    this.#settings = settings;
    this.#random = random;
    this.#counts = new SlidingCounts(4, settings.windowMs, settings.windowCalls);
  }

  /** The `slowOverMs` of the settings, even if `slowOver` is set. */
  get slowOverMs(): number {
    return this.#settings.slowOverMs;
  }

  get forced(): 'open' | 'closed' | undefined {
    return this.#forced;
  }

  /** The reason that was given to `force`. */
  get forcedBecause(): string | undefined {
    return this.#forcedBecause;
  }

  /** When the breaker first opened since it was last closed. Only valid while it is not closed. */
  get failingSince(): number {
    return this.#failingSince;
  }

  /**
   * When the state last changed, or when `force` last changed the forced state; 0 if neither has happened.
   */
  get changedAt(): number {
    return this.#changedAt;
  }

  /** Why the state last changed. */
  get cause(): BreakerCause | undefined {
    return this.#cause;
  }

  /** Returns how many calls are in the window, how many of them failed, and how many were slow. */
  counts(now: number): { readonly calls: number; readonly failures: number; readonly slow: number } {
    const totals = this.#counts.totals(now);
    return { calls: totals[CALLS]!, failures: totals[FAILURES]!, slow: totals[SLOW]! };
  }

  /** Whether the breaker is closed, so that every call is admitted. */
  get isClosed(): boolean {
    return this.#ticket >= 0;
  }

  /**
   * Admits a call: returns its ticket (its number), or −1 if the call must not be sent. A probe (a trial
   * call) without a result counts as failed after `leaseMs`.
   */
  admit(now: number, leaseMs: number): number {
    return this.#ticket >= 0 ? this.#ticket : this.#admitProbe(now, leaseMs);
  }

  /** Whether `admit` would return −1 now. */
  refuses(now: number): boolean {
    return this.#ticket < 0 && !this.#hasRoom(now);
  }

  /** Returns how many calls would be admitted now; Infinity while closed. */
  room(now: number): number {
    if (this.isClosed) return Infinity;
    return this.#hasRoom(now) ? this.#settings.probes - this.#probes.size : 0;
  }

  /** Counts a call that was not sent because the breaker refused it. */
  turnAway(): void {
    if (++this.#turnedAway >= REFUSALS_A_ROUND) this.#reopensAt = Math.min(this.#reopensAt, this.#soonestAt);
  }

  /**
   * Counts the result of a call. A result with an old ticket (from before a change of state) is ignored.
   * `full`: the target answered that it is full.
   */
  settle(now: number, ticket: number, failed: boolean, durationMs: number, full = false): void {
    const slow = durationMs > this.#slowOverMs(durationMs);
    if (ticket === this.#ticket) this.#count(now, failed, slow, full);
    else if (this.#takes(now, ticket)) {
      if (failed || slow) this.#reopen(now, 'probe_failed');
      else {
        this.succeeded++;
        if (++this.#successes >= this.#settings.probes) this.#close(now, 'probes_succeeded');
      }
    }
  }

  /** Reports that an admitted call has no result, because it was cancelled or never sent. */
  cancel(now: number, ticket: number): void {
    this.#takes(now, ticket);
  }

  /** Returns when a call may be admitted: `now` if one would be admitted now, Infinity while forced open. */
  reopensAt(now: number): number {
    if (!this.refuses(now)) return now;
    if (this.#forced) return Infinity;
    return this.#state === 'open' ? this.#reopensAt : this.#firstLeaseEnd();
  }

  /**
   * Returns the state at `now`. It is `half-open` as soon as the open time has passed. But `onChange` is
   * called only when the first probe is admitted.
   */
  state(now: number): BreakerState {
    const hasRoom = this.#hasRoom(now);
    return hasRoom && this.#state === 'open' ? 'half-open' : this.#state;
  }

  /**
   * Keeps the breaker open or closed until `force(undefined)`. While it is forced closed, calls are still
   * counted. After `force(undefined)`, a breaker that was forced open admits a probe immediately.
   */
  force(to: 'open' | 'closed' | undefined, now: number, because?: string): void {
    if (to !== this.#forced) this.#changedAt = now;
    this.#forced = to;
    this.#forcedBecause = to && because;
    if (to === 'closed') this.#close(now, 'forced');
    if (to === 'open') {
      this.#open(now, 'forced');
      this.#reopensAt = now;
    }
  }

  save(now: number): BreakerSnapshot {
    this.#catchUp(now);
    return {
      state: this.isClosed ? 'closed' : 'open',
      forced: this.#forced,
      forcedBecause: this.#forcedBecause,
      serial: this.#serial,
      inARow: this.#inARow,
      counts: this.#counts.save(now),
      failingForMs: now - this.#failingSince,
      reopensInMs: this.#reopensAt - now,
      ...(this.#cause && { cause: this.#cause, changedForMs: now - this.#changedAt }),
    };
  }

  /**
   * Restores a snapshot. It does not call `onChange`, and it forgets the probes in flight. If time has passed
   * since the snapshot was saved, subtract that time from `now`.
   */
  restore(snapshot: BreakerSnapshot, now: number): void {
    this.#probes.clear();
    this.#state = snapshot.state;
    this.#forced = snapshot.forced;
    this.#forcedBecause = snapshot.forcedBecause;
    this.#serial = snapshot.serial;
    this.#ticket = snapshot.state === 'closed' ? snapshot.serial : NONE;
    this.#inARow = snapshot.inARow;
    this.#counts.restore(snapshot.counts, now);
    this.#failingSince = now - snapshot.failingForMs;
    this.#openForMs = Math.min(snapshot.reopensInMs, this.#settings.openForMs[1]);
    this.#reopensAt = now + this.#openForMs;
    this.#soonestAt = this.#reopensAt;
    this.#cause = snapshot.cause;
    this.#changedAt = snapshot.changedForMs === undefined ? 0 : now - snapshot.changedForMs;
  }

  #slowOverMs(durationMs: number): number {
    return this.slowOver && durationMs > SLOW_MIN_MS ? this.slowOver() : this.#settings.slowOverMs;
  }

  #count(now: number, failed: boolean, slow: boolean, full: boolean): void {
    this.#counts.turn(now);
    this.#counts.add(CALLS);
    if (failed) {
      this.failed++;
      this.#inARow++;
      this.#counts.add(FAILURES);
      if (full) this.#counts.add(FULL);
    } else {
      this.succeeded++;
      this.#inARow = 0;
    }
    if (slow) this.#counts.add(SLOW);
    if (this.#forced || !(failed || slow)) return;
    const cause = this.#causeToOpen(failed, slow);
    if (cause) this.#open(now, cause);
  }

  #causeToOpen(failed: boolean, slow: boolean): BreakerCause | undefined {
    const { consecutive, minimum, windowCalls, failureRatio, slowRatio } = this.#settings;
    const calls = this.#counts.total(CALLS);
    const failures = this.#counts.total(FAILURES);
    if (consecutive > 0 && this.#inARow >= consecutive && !this.#isChance(calls, failures))
      return 'consecutive_failures';
    if (calls < Math.min(minimum, windowCalls || minimum)) return undefined;
    if (failed && failures - this.#counts.total(FULL) >= failureRatio * calls) return 'failure_ratio';
    if (slow && this.#counts.total(SLOW) >= slowRatio * calls) return 'slow_ratio';
    return undefined;
  }

  /**
   * Whether chance alone may explain the failures in a row. If a third of 1,000 calls a second fail, 5
   * failures in a row are normal, and 27 are not.
   */
  #isChance(calls: number, failures: number): boolean {
    const { consecutive, minimum } = this.#settings;
    const before = calls - this.#inARow;
    if (before < minimum) return false;
    const share = (failures - this.#inARow) / before;
    return (
      this.#inARow < consecutive + ROW_GROWTH * Math.log2(calls / minimum) ||
      calls * share ** this.#inARow > UNLIKELY
    );
  }

  #admitProbe(now: number, leaseMs: number): number {
    if (!this.#hasRoom(now)) return -1;
    if (this.#state === 'open') {
      this.#successes = 0;
      this.#become('half-open', 'open_time_passed', now);
    }
    this.#probes.set(++this.#serial, now + Math.min(leaseMs, LEASE_MAX_MS));
    return this.#serial;
  }

  #hasRoom(now: number): boolean {
    this.#catchUp(now);
    if (this.#forced) return false;
    return this.#state === 'open' ? now >= this.#reopensAt : this.#probes.size < this.#settings.probes;
  }

  /** Removes the probe (a trial call) with this ticket. Returns false if no such probe is in flight. */
  #takes(now: number, ticket: number): boolean {
    this.#catchUp(now);
    return this.#probes.delete(ticket);
  }

  /**
   * Makes the changes of state that are due. If a probe (a trial call) has no result in time, the breaker
   * opens again. If the clock has gone back, the open time starts again.
   */
  #catchUp(now: number): void {
    const wentBack = now < this.#reopensAt - this.#openForMs;
    if (wentBack) this.#reopensAt = now + this.#openForMs;
    if (this.#probes.size === 0) return;
    const endedAt = wentBack ? now : this.#firstLeaseEnd();
    if (endedAt <= now) this.#reopen(endedAt, 'probe_expired');
  }

  #firstLeaseEnd(): number {
    return Math.min(...this.#probes.values());
  }

  #reopen(at: number, because: 'probe_failed' | 'probe_expired'): void {
    this.failed++;
    this.#open(at, because);
  }

  #open(at: number, because: BreakerCause): void {
    if (this.#state === 'closed') this.#failingSince = at;
    const [least, most] = this.#settings.openForMs;
    const openForMs = Math.min(most, Math.max(least, (at - this.#failingSince) / 4));
    const chance = 0.5 + this.#random() / 2;
    this.#openForMs = openForMs * chance;
    this.#reopensAt = at + this.#openForMs;
    this.#soonestAt = at + least * chance;
    this.#turnedAway = 0;
    this.#probes.clear();
    this.#ticket = NONE;
    this.#become('open', because, at);
  }

  #close(at: number, because: BreakerCause): void {
    this.#probes.clear();
    this.#counts.clear();
    this.#inARow = 0;
    this.#ticket = ++this.#serial;
    this.#become('closed', because, at);
  }

  #become(to: BreakerState, because: BreakerCause, at: number): void {
    const from = this.#state;
    this.#state = to;
    if (from === to) return;
    this.#changedAt = at;
    this.#cause = because;
    this.onChange?.(from, to, because, at);
  }
}
