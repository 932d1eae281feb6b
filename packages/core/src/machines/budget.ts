import { SlidingCounts } from './sliding-counts.ts';
import { StartCredit } from './start-credit.ts';

/** How many retries a budget allows. A `ratio` of 0.2 allows one retry for five calls. */
export interface BudgetSettings {
  /** How many tokens each success adds. A retry costs one token. */
  readonly ratio: number;
  /**
   * The budget can hold `ratio` tokens for each operation that began in this time, but always at least one.
   */
  readonly windowMs: number;
  /**
   * The most attempts of one operation. A new budget starts with `attempts − 1` tokens, but at most 100.
   * These tokens expire.
   */
  readonly attempts: number;
}

/**
 * The saved state of a budget, as plain JSON. Times are relative to the time of saving, and tokens are in
 * millionths.
 */
export interface BudgetSnapshot {
  readonly earned: number;
  readonly floor: number;
  readonly free: number;
  readonly credit: number;
  /** Ms until the tokens that a new budget starts with expire; null if their time has not begun. */
  readonly creditLeftMs: number | null;
  readonly firstTries: readonly number[];
}

/** Tokens are counted in millionths, so that ten successes with a ratio of 0.1 add exactly one token. */
const TOKEN = 1_000_000;

/** The most tokens that a new budget starts with. */
const CREDIT_MAX = 100;
/** The budget is a bucket of tokens. The minimum size of the bucket grows at most to this many tokens. */
const FLOOR_MAX = 10;
/**
 * A successful retry raises the minimum size of the token bucket by this amount. A failed retry lowers it by
 * the same amount.
 */
const FLOOR_STEP = TOKEN / 2;
/**
 * Each success at the first attempt lowers the minimum size of the token bucket: the part above one token
 * shrinks by 1 %.
 */
const FADE = 0.01;
/** All retries together are at most this share of the first attempts: 30 retries for 100 first attempts. */
const RETRIES_MAX = 0.3;

/**
 * Limits retries with a bucket of tokens. A "first try" is the first attempt of an operation.
 *
 * 1. A success adds `ratio` tokens, and a failed retry takes one token. In an outage nothing succeeds, so the
 *    tokens run out and the retries stop. The bucket can hold `ratio` tokens for each first try of the last
 *    `window`, and always at least one token.
 * 2. A retry that succeeds is free, unless the failure before it may mean overload. For 100 first tries, at
 *    most 200 × `ratio` retries are free, and at most 30 retries are made in all.
 * 3. The bucket has a minimum size, so that clients with few calls can retry too. Successful retries raise
 *    this minimum, from one token up to `attempts − 1` (10 at most). Failed retries lower it.
 */
export class RetryBudget {
  /** Only `resize` changes the settings. */
  settings: BudgetSettings;
  #deposit: number;
  #floorMax: number;
  #firstTries: SlidingCounts;
  #credit: StartCredit;
  #earned = 0;
  /** The minimum size of the token bucket, in millionths of a token. */
  #floor = TOKEN;
  /** How many more successful retries are free, in millionths. Each first try increases this number. */
  #free: number;
  /** How many postpaid retries are in flight. A postpaid retry costs a token only if it fails. */
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

  /**
   * Reports that an operation begins. Do not call it for retries or for hedges (second attempts in parallel).
   */
  firstTry(now: number): void {
    this.#firstTries.turn(now);
    this.#firstTries.add(0);
    // Drops the tokens above the current limit. Otherwise a later burst of calls could raise the limit, and
    // these tokens could be spent again.
    this.#earn(0);
    const free = Math.max(0, Math.min(2 * this.#deposit, RETRIES_MAX * TOKEN - this.#deposit));
    this.#free = Math.min(this.#free + free, this.#floorMax);
    this.#credit.onFirstTry(now);
  }

  /** Reports that an operation succeeded at its first attempt. */
  success(): void {
    this.#floor -= FADE * (this.#floor - TOKEN);
    this.#credit.onSuccess();
    this.#earn(this.#deposit);
  }

  /**
   * Charges one token for a retry. With `postpaid`, the token is charged only if the retry fails. Before,
   * check with `tokens` that a token is left. When the retry ends, call exactly one of `retrySucceeded`,
   * `retryFailed` and `retryDropped`.
   */
  startRetry(now: number, postpaid: boolean): void {
    if (postpaid) this.#pending++;
    else this.spend(now, 1);
  }

  /**
   * Reports that an operation succeeded after a retry. While free retries are left, the retry costs nothing if
   * `postpaid` or `refund` is true.
   */
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

  /** Reports that a retry failed, or was cancelled in flight. */
  retryFailed(now: number, postpaid: boolean): void {
    if (postpaid) {
      this.#pending--;
      this.spend(now, 1);
    }
    this.#floor = Math.max(TOKEN, this.#floor - FLOOR_STEP);
  }

  /** Reports that a retry was charged with `startRetry` but is not sent. */
  retryDropped(postpaid: boolean): void {
    if (postpaid) this.#pending--;
    else this.refund(1);
  }

  /** Returns how many tokens can pay for a retry. The number can be negative. */
  tokens(now: number, postpaid = false): number {
    this.#firstTries.turn(now);
    this.#credit.pass(now);
    this.#earn(0);
    const held = this.#earned + this.#credit.left;
    // The balance may fall below zero by `overdraft`. Start credit (the tokens of a new budget) reduces
    // `overdraft`, so that both together are at most `#floorMax`. A postpaid retry in flight may still cost a
    // token, so that token is subtracted.
    const overdraft = Math.max(0, Math.min(this.#floor - TOKEN, this.#floorMax - this.#credit.left));
    const overdrawn = held + overdraft - this.#pending * TOKEN;
    return (postpaid ? overdrawn : Math.min(held, overdrawn)) / TOKEN;
  }

  /** Returns the most tokens that the budget may hold now. More traffic raises this limit. */
  tokensMax(now: number): number {
    this.#firstTries.turn(now);
    return this.#limit() / TOKEN;
  }

  /** Whether the budget holds less than half of its maximum, or less than one token. */
  isScarce(now: number): boolean {
    return this.tokens(now) < Math.max(1, this.#limit() / (2 * TOKEN));
  }

  /** Takes `cost` tokens. If there are fewer, it takes none and returns false. */
  trySpend(now: number, cost: number): boolean {
    if (this.tokens(now) < cost) return false;
    this.spend(now, cost);
    return true;
  }

  /**
   * Takes `cost` tokens. Tokens of the start credit (which a new budget starts with) are taken first, because
   * they expire. The balance may become negative, down to a fixed limit.
   */
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

  /** Changes the settings. Tokens that were earned are kept, up to the new limit. */
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

  /**
   * Restores a snapshot. If the snapshot has more start credit than this budget allows, only the allowed part
   * is restored.
   */
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
