import type { Random } from '../time/clock.ts';
import { SlidingCounts } from './sliding-counts.ts';

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

export interface BreakerSettings {
  /** How far back calls are counted. */
  readonly windowMs: number;
  /** Counts the last so many calls instead, however old they are; 0 counts by time. */
  readonly windowCalls: number;
  /** Calls in the window below which no ratio opens it. */
  readonly minimum: number;
  readonly failureRatio: number;
  /** Opens after so many failures in a row, however far apart they are, in heavy traffic after more; 0 never does. */
  readonly consecutive: number;
  /** A call is slow when it takes longer; Infinity: none is. */
  readonly slowOverMs: number;
  readonly slowRatio: number;
  /** The least and the most time it stays open, before jitter. */
  readonly openForMs: readonly [least: number, most: number];
  /** How many calls a half-open breaker has in flight at most, and how many must succeed in a row to close it. */
  readonly probes: number;
}

/** Plain JSON. Times are relative, so that it can be taken over by another process or another policy. */
export interface BreakerSnapshot {
  /** A half-open breaker is saved as an open one whose time has passed: probes in flight are not handed over. */
  readonly state: 'closed' | 'open';
  readonly forced?: 'open' | 'closed' | undefined;
  /** The last ticket given, so that none is given twice. */
  readonly serial: number;
  readonly inARow: number;
  readonly counts: readonly number[];
  readonly failingForMs: number;
  readonly reopensInMs: number;
}

const CALLS = 0;
const FAILURES = 1;
const SLOW = 2;
const FULL = 3;

/** Matches no ticket that was ever given, nor the −1 of a refusal. */
const NONE = -2;

/** Each doubling of the calls in the window, from `minimum` on, makes a row of failures so much longer. */
const ROW_GROWTH = 2;
/** Calls up to this long are never slow by `slowOver`. */
const SLOW_MIN_MS = 1000;

/** And it is so long that fewer such rows than this are to be expected among the calls of the window. */
const UNLIKELY = 0.01;

/** So many calls turned away allow for another look, before the open time has passed. */
const REFUSALS_A_ROUND = 100;

/** Holds even a probe without any time limit to the promise that no breaker sticks. */
const LEASE_MAX_MS = 600_000;

/**
 * Stops calling a target that is failing, and finds out with a few calls when it is well again.
 *
 * An admission is a ticket. All tickets of one closed period are the same number and each probe has its own, so a
 * result that comes after the state it was admitted in finds no match and changes nothing. Nothing is done for a ticket
 * while the breaker is closed: an admission that is never settled costs nothing and holds nothing up.
 *
 * Only a failed or slow call opens it: a success that fills the window to `minimum` does not.
 *
 * A target that is full and says so is not sick: what it serves would be lost if it were cut off, and its refusals cost it
 * little. So they open the breaker in a row, when it serves nothing, but not by their share.
 *
 * It stays open for a quarter of the time that it has been failing, within `openForMs`, and half to all of that by
 * chance. So no outage is made longer by more than a quarter of its length, a long one is probed seldom, and
 * there is no period for a flapping server to lock into. (Doubling the time at each reopening serves 17 % of a server
 * that is up and down for 5 s in turn; this serves 46 % of the 50 % there are.) That is for callers with few calls, of which
 * there may be many. Who is turned away a hundred times may look again after the least open time: a caller with
 * heavy traffic is back at once, and its probes are a small part of what it would send.
 *
 * Time passes lazily: nothing happens until somebody asks, and then as if it had happened on time.
 */
export class Breaker {
  /** Told of each change of state and the moment from which it counts. */
  onChange: ((from: BreakerState, to: BreakerState, because: BreakerCause, at: number) => void) | undefined =
    undefined;
  /** From how many ms on a call is slow, where the settings do not say it; asked after calls of over a second. */
  slowOver: (() => number) | undefined = undefined;
  /** Calls and probes that have succeeded so far; one whose ticket is no longer current is not counted. */
  succeeded = 0;
  /** Calls and probes that have failed so far, probes that were slow or never settled included. */
  failed = 0;

  readonly #settings: BreakerSettings;
  readonly #random: Random;
  readonly #counts: SlidingCounts;
  #state: BreakerState = 'closed';
  #forced: 'open' | 'closed' | undefined = undefined;
  /** What a closed breaker gives to everyone; NONE in the other states. */
  #ticket = 0;
  #serial = 0;
  #inARow = 0;
  /** When it first opened since it was last closed. */
  #failingSince = 0;
  #openForMs = 0;
  #reopensAt = 0;
  /** When it may be probed at the earliest, however many it has turned away. */
  #soonestAt = 0;
  #turnedAway = 0;
  #successes = 0;
  /** The tickets in flight and when their leases end; none unless it is half-open. */
  readonly #probes: Map<number, number> = new Map();

  constructor(settings: BreakerSettings, random: Random) {
    this.#settings = settings;
    this.#random = random;
    this.#counts = new SlidingCounts(4, settings.windowMs, settings.windowCalls);
  }

  /** From when on a call is slow; Infinity: none is. */
  get slowOverMs(): number {
    return this.#settings.slowOverMs;
  }

  get forced(): 'open' | 'closed' | undefined {
    return this.#forced;
  }

  /** Whether it admits everyone, without being asked what time it is. */
  get isClosed(): boolean {
    return this.#ticket >= 0;
  }

  /** A ticket, or −1 when the call must not be sent. A probe that is not settled within `leaseMs` counts as failed. */
  admit(now: number, leaseMs: number): number {
    return this.#ticket >= 0 ? this.#ticket : this.#admitProbe(now, leaseMs);
  }

  /** Whether `admit` would say −1, without admitting anything. */
  refuses(now: number): boolean {
    return this.#ticket < 0 && !this.#hasRoom(now);
  }

  /** How many calls it would admit now: Infinity while closed, none while open, half-open as many as it has probes left. */
  room(now: number): number {
    if (this.isClosed) return Infinity;
    return this.#hasRoom(now) ? this.#settings.probes - this.#probes.size : 0;
  }

  /** A call was not made because it refused. */
  turnAway(): void {
    if (++this.#turnedAway >= REFUSALS_A_ROUND) this.#reopensAt = Math.min(this.#reopensAt, this.#soonestAt);
  }

  /**
   * What became of a call. A ticket that is no longer current, and the −1 of a refusal, count for nothing. `full`: it failed
   * because the target takes no more, and says so.
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

  /** The call was not sent: as if it had never been admitted. */
  cancel(now: number, ticket: number): void {
    this.#takes(now, ticket);
  }

  /**
   * When a call may be admitted again: `now` when it may already, Infinity when forced open. While all probes are in
   * flight, the end of the first lease: the latest moment at which something changes.
   */
  reopensAt(now: number): number {
    if (!this.refuses(now)) return now;
    if (this.#forced) return Infinity;
    return this.#state === 'open' ? this.#reopensAt : this.#firstLeaseEnd();
  }

  /** An open breaker is half-open as soon as its time has passed, although `onChange` hears of it with the first probe. */
  state(now: number): BreakerState {
    const hasRoom = this.#hasRoom(now);
    return hasRoom && this.#state === 'open' ? 'half-open' : this.#state;
  }

  /**
   * Holds it open or closed whatever happens, until it is let go with undefined. Calls are counted while it is forced
   * closed; let go from forced open, it probes at once.
   */
  force(to: 'open' | 'closed' | undefined, now: number): void {
    this.#forced = to;
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
      serial: this.#serial,
      inARow: this.#inARow,
      counts: this.#counts.save(now),
      failingForMs: now - this.#failingSince,
      reopensInMs: this.#reopensAt - now,
    };
  }

  /**
   * Takes over a snapshot, without telling `onChange`; its own probes in flight no longer count. To account for time that
   * has passed since it was saved, give a `now` that is earlier by as much.
   */
  restore(snapshot: BreakerSnapshot, now: number): void {
    this.#probes.clear();
    this.#state = snapshot.state;
    this.#forced = snapshot.forced;
    this.#serial = snapshot.serial;
    this.#ticket = snapshot.state === 'closed' ? snapshot.serial : NONE;
    this.#inARow = snapshot.inARow;
    this.#counts.restore(snapshot.counts, now);
    this.#failingSince = now - snapshot.failingForMs;
    this.#openForMs = Math.min(snapshot.reopensInMs, this.#settings.openForMs[1]);
    this.#reopensAt = now + this.#openForMs;
    this.#soonestAt = this.#reopensAt;
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
    const cause = this.#cause(failed, slow);
    if (cause) this.#open(now, cause);
  }

  #cause(failed: boolean, slow: boolean): BreakerCause | undefined {
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
   * Whether heavy traffic brings such a row of failures by chance. Among a thousand calls a second of which a third fail,
   * five in a row come every second, and twenty-six never. Where four fifths fail because the target takes no more, a row
   * of eighty is no news either.
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

  /** Whether a breaker that is not closed would admit a probe. */
  #hasRoom(now: number): boolean {
    this.#catchUp(now);
    if (this.#forced) return false;
    return this.#state === 'open' ? now >= this.#reopensAt : this.#probes.size < this.#settings.probes;
  }

  /** Takes a probe out of flight; false when it is not, or no longer, one of them. */
  #takes(now: number, ticket: number): boolean {
    this.#catchUp(now);
    return this.#probes.delete(ticket);
  }

  /** Lets pass what time has brought. A clock that has gone back to before it opened starts the open time anew. */
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
    if (from !== to) this.onChange?.(from, to, because, at);
  }
}
