import { SlidingCounts } from './sliding-counts.ts';
import { StartCredit } from './start-credit.ts';

export interface BudgetSettings {
  /** Tokens that a success adds; a retry takes one. */
  readonly ratio: number;
  /** The budget holds at most `ratio` × the first tries of this time. */
  readonly windowMs: number;
  /** Attempts of one operation. A fresh budget starts with `attempts − 1` tokens of credit. */
  readonly attempts: number;
}

/** Plain JSON. Times are relative, and tokens are in millionths. */
export interface BudgetSnapshot {
  readonly earned: number;
  readonly floor: number;
  readonly free: number;
  readonly credit: number;
  /** null while the window of the credit has not started. */
  readonly creditLeftMs: number | null;
  readonly firstTries: readonly number[];
}

/** Tokens are kept in millionths, so that ten successes at a ratio of 0.1 make a whole one. */
const TOKEN = 1_000_000;

/** Tokens that a fresh budget of unlimited attempts starts with. */
const CREDIT_MAX = 100;
/** The smallest bucket of unlimited attempts grows up to this many tokens. */
const FLOOR_MAX = 10;
/** A retry that succeeds adds this to the smallest bucket; a retry that fails takes it away. */
const FLOOR_STEP = TOKEN / 2;
/** An operation that succeeds at its first attempt takes away this share of the growth. */
const FADE = 0.01;
/** Earned and free retries together never exceed this share of the first tries. */
const RETRIES_MAX = 0.3;

/**
 * Limits the retries that a caller adds to its own traffic.
 *
 * 1. A success earns `ratio` of a token and a retry that fails costs one. So in an outage, where nothing succeeds, only the
 *    tokens in the bucket are spent: at most `ratio` × the caller's own first tries in the window, or one if that is more.
 * 2. A retry that succeeds costs nothing, unless the failure before it may mean overload, or more than `2 × ratio` of the
 *    first tries would be free: all in all, retries are at most 30 % of the first tries.
 * 3. While retries succeed, the smallest bucket grows from one token to one operation's worth (`attempts − 1`), and may
 *    be overdrawn by as much; retries that fail and operations that need none let it shrink again.
 *
 * The limit does not depend on the number of clients: 10 clients with 1,000 calls a second hold as many tokens as 10,000
 * clients with one call a second.
 */
export class RetryBudget {
  /** Changed only by `resize`. */
  settings: BudgetSettings;
  #deposit: number;
  #floorMax: number;
  #firstTries: SlidingCounts;
  #credit: StartCredit;
  #earned = 0;
  /** The smallest bucket: its size however little the traffic. */
  #floor = TOKEN;
  /** The successful retries that may still be free, in millionths. First tries add to it. */
  #free: number;
  /** Postpaid retries in flight: they cost a token only if they fail. */
  #pending = 0;

  constructor(settings: BudgetSettings) {
    const { ratio, windowMs, attempts } = settings;
    this.settings = settings;
    this.#deposit = Math.round(ratio * TOKEN);
    this.#floorMax = TOKEN * Math.max(1, Math.min(attempts - 1, FLOOR_MAX));
    this.#free = ratio > 0 ? this.#floorMax : 0;
    this.#firstTries = new SlidingCounts(1, windowMs);
    this.#credit = new StartCredit(
      TOKEN * Math.min(attempts - 1, CREDIT_MAX),
      windowMs,
      attempts === Infinity,
    );
  }

  /** An operation begins. Retries and hedges are not reported here. */
  firstTry(now: number): void {
    this.#firstTries.turn(now);
    this.#firstTries.add(0);
    // Drops tokens above the current limit now: a later burst must not bring back what busier times earned.
    this.#earn(0);
    const free = Math.max(0, Math.min(2 * this.#deposit, RETRIES_MAX * TOKEN - this.#deposit));
    this.#free = Math.min(this.#free + free, this.#floorMax);
    this.#credit.onFirstTry(now);
  }

  /** An operation succeeded at its first attempt. The time is not needed: `tokens` brings the window up to date. */
  success(): void {
    this.#floor -= FADE * (this.#floor - TOKEN);
    this.#credit.onSuccess();
    this.#earn(this.#deposit);
  }

  /**
   * Charges a retry: a token now, or, if it is `postpaid`, a token when it fails. Check `tokens` first. Settle each retry
   * once, with one of the three methods below.
   */
  startRetry(now: number, postpaid: boolean): void {
    if (postpaid) this.#pending++;
    else this.spend(now, 1);
  }

  /** An operation succeeded after a retry. `refund`: a token that was paid in advance is given back if free retries are left. */
  retrySucceeded(now: number, postpaid: boolean, refund: boolean): void {
    this.#floor = Math.min(this.#floor + FLOOR_STEP, this.#floorMax);
    this.#credit.onSuccess();
    this.#earn(this.#deposit);
    if (postpaid) this.#pending--;
    const isFree = (postpaid || refund) && this.#free >= TOKEN;
    if (isFree) this.#free -= TOKEN;
    if (isFree && refund) this.refund(1);
    if (!isFree && postpaid) this.spend(now, 1);
  }

  /** A retry failed, or was cancelled in flight. */
  retryFailed(now: number, postpaid: boolean): void {
    if (postpaid) {
      this.#pending--;
      this.spend(now, 1);
    }
    this.#floor = Math.max(TOKEN, this.#floor - FLOOR_STEP);
  }

  /** A retry that was charged is not sent. */
  retryDropped(postpaid: boolean): void {
    if (postpaid) this.#pending--;
    else this.refund(1);
  }

  /** Tokens that can pay for a retry; below 0 while the bucket is overdrawn. */
  tokens(now: number, postpaid = false): number {
    this.#firstTries.turn(now);
    this.#credit.pass(now);
    this.#earn(0);
    const held = this.#earned + this.#credit.left;
    // Postpaid retries in flight use the overdraft first, so that a few of them leave the tokens to prepaid retries. Start
    // credit and overdraft together are at most one operation's worth.
    const overdraft = Math.max(0, Math.min(this.#floor - TOKEN, this.#floorMax - this.#credit.left));
    const overdrawn = held + overdraft - this.#pending * TOKEN;
    return (postpaid ? overdrawn : Math.min(held, overdrawn)) / TOKEN;
  }

  /** Whether it holds less than half of its limit, or less than one token. */
  isScarce(now: number): boolean {
    return this.tokens(now) < Math.max(1, this.#limit() / (2 * TOKEN));
  }

  /** Takes `cost` tokens. With fewer tokens it takes none and returns false. */
  trySpend(now: number, cost: number): boolean {
    if (this.tokens(now) < cost) return false;
    this.spend(now, cost);
    return true;
  }

  /** Takes `cost` tokens, start credit first, because it expires. Never takes more than the overdraft allows. */
  spend(now: number, cost: number): void {
    this.tokens(now);
    const credit = Math.min(this.#credit.left, cost * TOKEN);
    this.#credit.left -= credit;
    this.#earned = Math.max(TOKEN - this.#floorMax, this.#earned + credit - cost * TOKEN);
  }

  refund(cost: number): void {
    const credit = Math.min(this.#credit.max - this.#credit.left, cost * TOKEN);
    this.#credit.left += credit;
    this.#earn(cost * TOKEN - credit);
  }

  /** Whether no operation has begun in the window. */
  isUnused(now: number): boolean {
    this.#firstTries.turn(now);
    return this.#firstTries.total(0) === 0;
  }

  /** Changes the settings. Earned tokens stay, up to the new limit. Start credit is never renewed. */
  resize(now: number, settings: BudgetSettings): this {
    const snapshot = this.save(now);
    const creditMax = this.#credit.max;
    const fresh = new RetryBudget(settings);
    this.settings = settings;
    this.#deposit = fresh.#deposit;
    this.#floorMax = fresh.#floorMax;
    this.#firstTries = fresh.#firstTries;
    this.#credit = fresh.#credit;
    this.#credit.max = Math.min(creditMax, this.#credit.max);
    this.restore(snapshot, now);
    return this;
  }

  save(now: number): BudgetSnapshot {
    this.tokens(now);
    const { left, endsAt } = this.#credit;
    return {
      earned: this.#earned,
      floor: this.#floor,
      free: this.#free,
      credit: left,
      creditLeftMs: endsAt === Infinity ? null : endsAt - now,
      firstTries: this.#firstTries.save(now),
    };
  }

  /** Takes over a snapshot. Start credit is not renewed, and never exceeds that of this budget. */
  restore(snapshot: BudgetSnapshot, now: number): void {
    this.#firstTries.restore(snapshot.firstTries, now);
    this.#earned = snapshot.earned;
    this.#floor = Math.min(snapshot.floor, this.#floorMax);
    this.#free = Math.min(snapshot.free, this.#floorMax);
    this.#credit.left = Math.min(this.#credit.max, snapshot.credit);
    this.#credit.endsAt = snapshot.creditLeftMs === null ? Infinity : now + snapshot.creditLeftMs;
  }

  #earn(millionths: number): void {
    this.#earned = Math.min(this.#earned + millionths, this.#limit());
  }

  #limit(): number {
    return Math.max(this.#floor, this.#deposit * this.#firstTries.total(0));
  }
}
