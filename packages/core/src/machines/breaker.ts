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
  /** Above 0: the window is this number of calls, however old they are. 0: the window is `windowMs`. */
  readonly windowCalls: number;
  /** With fewer calls in the window than this, no ratio opens the breaker. */
  readonly minimum: number;
  readonly failureRatio: number;
  /** This number of failures in a row opens the breaker, however far apart they are; heavy traffic needs more. 0: never. */
  readonly consecutive: number;
  /** A call that takes longer than this is slow. Infinity: no call is slow. */
  readonly slowOverMs: number;
  readonly slowRatio: number;
  /** The shortest and the longest open time, before jitter. */
  readonly openForMs: readonly [least: number, most: number];
  /** The most probes in flight while half-open, and the successes in a row that close the breaker. */
  readonly probes: number;
}

/**
 * The saved state of a breaker, as plain JSON. Its times are relative, so that another process or another policy can
 * restore it.
 */
export interface BreakerSnapshot {
  /** A half-open breaker is saved as an open one whose open time has passed. Probes in flight are not saved. */
  readonly state: 'closed' | 'open';
  readonly forced?: 'open' | 'closed' | undefined;
  /** The highest ticket given so far, so that no ticket is used twice. A ticket is the number of an admitted call. */
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

/** Means "no ticket". It differs from every ticket, and from the −1 that `admit` returns for a refusal. */
const NONE = -2;

/**
 * Each time the calls in the window double above `minimum`, this many more failures in a row are needed to open the
 * breaker.
 */
const ROW_GROWTH = 2;
/** A row of failures opens the breaker only if fewer such rows than this are expected in the window by chance. */
const UNLIKELY = 0.01;

/** `slowOver` is called only for calls that took longer than this. */
const SLOW_MIN_MS = 1000;

/** After this many refused calls the breaker may send a probe before its open time has passed. */
const REFUSALS_A_ROUND = 100;

/** A probe without a result has failed after this time at the latest, so that no breaker stays half-open for ever. */
const LEASE_MAX_MS = 600_000;

/**
 * Stops calling a target that is failing, and probes it with a few calls until it succeeds again.
 *
 * Each admitted call gets a number, its ticket. All calls of one closed period share a ticket, and each probe has its
 * own. A result that arrives after the state has changed has an old ticket and changes nothing. A closed breaker stores
 * nothing for a call, so a call whose result is never reported blocks nothing.
 *
 * Only a failed or slow call opens the breaker: a success that fills the window to `minimum` does not.
 *
 * A target that refuses calls because it is full still serves others, and its refusals cost it little. So such refusals
 * open the breaker when they come in a row, with no success between them, but do not count for `failureRatio`.
 *
 * The open time is a quarter of the time that the target has been failing, within `openForMs`, multiplied by a random
 * factor from 0.5 to 1. So the breaker makes an outage at most a quarter longer, probes a long outage seldom, and never
 * falls into step with a flapping server. (Doubling the open time at each reopening serves 17 % of the calls to a
 * server that is up and down for 5 s in turn; this rule serves 46 % of the possible 50 %.) A caller with heavy traffic
 * need not wait that long: after 100 refused calls it may send a probe as soon as the shortest open time has passed,
 * because its probes are a small part of what it would send.
 *
 * There is no timer. Each method first makes the changes of state that have become due, with the time at which they
 * were due.
 */
export class Breaker {
  /** Called at each change of state. `at` is the time from which the new state holds. */
  onChange: ((from: BreakerState, to: BreakerState, because: BreakerCause, at: number) => void) | undefined =
    undefined;
  /**
   * Returns the ms above which a call is slow, instead of `slowOverMs`. It is called only for calls longer than 1 s.
   */
  slowOver: (() => number) | undefined = undefined;
  /** Calls and probes that have succeeded so far, except those whose ticket was too old. */
  succeeded = 0;
  /** Calls and probes that have failed so far, including probes that were slow or had no result in time. */
  failed = 0;

  readonly #settings: BreakerSettings;
  readonly #random: Random;
  readonly #counts: SlidingCounts;
  #state: BreakerState = 'closed';
  #forced: 'open' | 'closed' | undefined = undefined;
  /** The ticket of every call while closed; NONE in the other states. */
  #ticket = 0;
  /** The highest ticket given so far. */
  #serial = 0;
  #inARow = 0;
  /** When the breaker first opened since it was last closed. */
  #failingSince = 0;
  #openForMs = 0;
  #reopensAt = 0;
  /** When a probe may be sent at the earliest, however many calls were refused. */
  #soonestAt = 0;
  #turnedAway = 0;
  #successes = 0;
  /**
   * The tickets of the probes in flight, each with the time at which it counts as failed if it has no result. Empty
   * unless the breaker is half-open.
   */
  readonly #probes: Map<number, number> = new Map();

  constructor(settings: BreakerSettings, random: Random) {
    this.#settings = settings;
    this.#random = random;
    this.#counts = new SlidingCounts(4, settings.windowMs, settings.windowCalls);
  }

  /** The `slowOverMs` of the settings, even if `slowOver` replaces it. */
  get slowOverMs(): number {
    return this.#settings.slowOverMs;
  }

  get forced(): 'open' | 'closed' | undefined {
    return this.#forced;
  }

  /** Whether the breaker is closed, so that every call is admitted. */
  get isClosed(): boolean {
    return this.#ticket >= 0;
  }

  /**
   * Returns a ticket, or −1 when the call must not be sent. A probe without a result after `leaseMs` counts as failed.
   */
  admit(now: number, leaseMs: number): number {
    return this.#ticket >= 0 ? this.#ticket : this.#admitProbe(now, leaseMs);
  }

  /** Whether `admit` would return −1. It admits no call. */
  refuses(now: number): boolean {
    return this.#ticket < 0 && !this.#hasRoom(now);
  }

  /**
   * How many calls would be admitted now: all while closed, none while open, the probes that are left while half-open.
   */
  room(now: number): number {
    if (this.isClosed) return Infinity;
    return this.#hasRoom(now) ? this.#settings.probes - this.#probes.size : 0;
  }

  /** Counts a call that was not sent because the breaker refused it. */
  turnAway(): void {
    if (++this.#turnedAway >= REFUSALS_A_ROUND) this.#reopensAt = Math.min(this.#reopensAt, this.#soonestAt);
  }

  /**
   * Counts the result of a call. Ignores a ticket that is too old, and the −1 of a refusal. `full`: the target answered
   * that it is full.
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

  /** Reports that an admitted call was not sent or was cancelled, so that it has no result. */
  cancel(now: number, ticket: number): void {
    this.#takes(now, ticket);
  }

  /**
   * When the next call may be admitted: `now` if it may already, Infinity while forced open. While all probes are in
   * flight, it is the time at which the first probe without a result counts as failed: the state changes by then.
   */
  reopensAt(now: number): number {
    if (!this.refuses(now)) return now;
    if (this.#forced) return Infinity;
    return this.#state === 'open' ? this.#reopensAt : this.#firstLeaseEnd();
  }

  /** Returns `half-open` as soon as the open time has passed. `onChange` is called later, with the first probe. */
  state(now: number): BreakerState {
    const hasRoom = this.#hasRoom(now);
    return hasRoom && this.#state === 'open' ? 'half-open' : this.#state;
  }

  /**
   * Keeps the breaker open or closed, whatever the results, until `force(undefined)`. While it is forced closed, calls
   * are still counted. When a breaker is no longer forced open, it admits a probe immediately.
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
   * Restores a snapshot without calling `onChange`, and forgets the probes in flight. To account for the time since the
   * snapshot was saved, subtract that time from `now`.
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
   * Whether this row of failures is likely by chance. With 1,000 calls a second of which a third fail, 5 failures in a
   * row come every second, and 26 practically never. Where four fifths fail because the target is full, even 60
   * failures in a row prove nothing.
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

  /** Removes a probe from those in flight. Returns false if `ticket` is not the ticket of a probe in flight. */
  #takes(now: number, ticket: number): boolean {
    this.#catchUp(now);
    return this.#probes.delete(ticket);
  }

  /**
   * Opens the breaker if a probe has no result in time. If the clock went back to before the breaker opened, restarts
   * the open time.
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
    if (from !== to) this.onChange?.(from, to, because, at);
  }
}
