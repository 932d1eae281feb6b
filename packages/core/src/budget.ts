import { SlidingCounts } from './sliding-counts.ts';

export interface BudgetSettings {
  /** What a success adds, in tokens; a retry takes one. */
  readonly ratio: number;
  /** The own traffic that limits what can be held. */
  readonly windowMs: number;
  /** Attempts of one operation; a fresh budget has credit for one less. */
  readonly attempts: number;
}

/** Plain JSON. Times are relative, and tokens are in millionths. */
export interface BudgetSnapshot {
  readonly earned: number;
  readonly credit: number;
  /** null while there has been no first try. */
  readonly creditLeftMs: number | null;
  readonly firstTries: readonly number[];
}

/** Tokens are kept in millionths, so that ten successes at a ratio of 0.1 make a whole one. */
const TOKEN = 1_000_000;

/** What a fresh budget of unlimited attempts has credit for. */
const CREDIT_MAX = 100;

/**
 * How many retries a caller may add to its own traffic. Successes pay for them: when nothing succeeds, what is left in
 * the bucket is all there is, so that an outage is not answered with more load.
 *
 * The bucket holds `ratio` of the caller's own first tries in the window and at least one token once earned. So the
 * retries of a fleet do not depend on the number of its clients: ten with a thousand calls a second hold
 * as much as ten thousand with one. The price is paid by callers with few calls: one that has spent its token retries
 * again only after 1 / `ratio` successes, which at 5 % failures makes 98 % succeed and not 100.
 *
 * A fresh budget has credit for the retries of one operation until its first window has passed, so that a script with
 * a single call can retry. Work without a limit of attempts may have begun within an outage, and needs it for as long as
 * that lasts: its window begins with the first success.
 */
export class RetryBudget {
  /** Changed by `resize` alone. */
  settings: BudgetSettings;
  #deposit: number;
  #firstTries: SlidingCounts;
  #earned = 0;
  /** What is left of the credit, and what it may be refilled to by a refund. */
  #credit: number;
  #creditMax: number;
  /** From the next look on, the last window of the credit passes. */
  #creditEnds = false;
  #creditEndsAt = Infinity;

  constructor(settings: BudgetSettings) {
    this.settings = settings;
    this.#deposit = Math.round(settings.ratio * TOKEN);
    this.#firstTries = new SlidingCounts(1, settings.windowMs);
    this.#creditMax = TOKEN * Math.min(settings.attempts - 1, CREDIT_MAX);
    this.#credit = this.#creditMax;
  }

  /** An operation begins. Retries and hedges are not told. */
  firstTry(now: number): void {
    this.#firstTries.turn(now);
    this.#firstTries.add(0);
    // What was earned in busier times and is too much by now does not come back with a burst.
    this.#earn(0);
    this.#creditEnds ||= this.settings.attempts < Infinity;
    this.#endCredit(now);
  }

  /** An operation has succeeded, at whichever attempt. When, nobody has to know: time counts when tokens are asked for. */
  success(): void {
    this.#creditEnds = true;
    this.#earn(this.#deposit);
  }

  tokens(now: number): number {
    this.#firstTries.turn(now);
    this.#endCredit(now);
    this.#earn(0);
    if (now >= this.#creditEndsAt) this.#credit = this.#creditMax = 0;
    return (this.#earned + this.#credit) / TOKEN;
  }

  /** Takes `cost` tokens; when there are fewer it takes none and says false. */
  trySpend(now: number, cost: number): boolean {
    if (this.tokens(now) < cost) return false;
    this.spend(now, cost);
    return true;
  }

  /** Takes `cost` tokens, or what there is. Credit goes first, as it does not keep. */
  spend(now: number, cost: number): void {
    this.tokens(now);
    const credit = Math.min(this.#credit, cost * TOKEN);
    this.#credit -= credit;
    this.#earned = Math.max(0, this.#earned + credit - cost * TOKEN);
  }

  /** Gives back what was taken for a retry that was not sent. */
  refund(cost: number): void {
    const credit = Math.min(this.#creditMax - this.#credit, cost * TOKEN);
    this.#credit += credit;
    this.#earn(cost * TOKEN - credit);
  }

  /** Whether no operation has begun in the window. */
  isUnused(now: number): boolean {
    this.#firstTries.turn(now);
    return this.#firstTries.total(0) === 0;
  }

  /** Changes the settings. What was earned stays, within what the new ones allow, and credit is never renewed. */
  resize(now: number, settings: BudgetSettings): this {
    const snapshot = this.save(now);
    const fresh = new RetryBudget(settings);
    this.settings = settings;
    this.#deposit = fresh.#deposit;
    this.#firstTries = fresh.#firstTries;
    this.#creditMax = Math.min(this.#creditMax, fresh.#creditMax);
    this.restore(snapshot, now);
    return this;
  }

  save(now: number): BudgetSnapshot {
    this.tokens(now);
    return {
      earned: this.#earned,
      credit: this.#credit,
      creditLeftMs: this.#creditEndsAt === Infinity ? null : this.#creditEndsAt - now,
      firstTries: this.#firstTries.save(now),
    };
  }

  /** Takes over a snapshot. Credit is not renewed by a restart, nor larger than this budget's own. */
  restore(snapshot: BudgetSnapshot, now: number): void {
    this.#firstTries.restore(snapshot.firstTries, now);
    this.#earned = snapshot.earned;
    this.#credit = Math.min(this.#creditMax, snapshot.credit);
    this.#creditEndsAt = snapshot.creditLeftMs === null ? Infinity : now + snapshot.creditLeftMs;
  }

  #endCredit(now: number): void {
    if (this.#creditEnds && this.#creditEndsAt === Infinity)
      this.#creditEndsAt = now + this.settings.windowMs;
  }

  #earn(millionths: number): void {
    const most = Math.max(TOKEN, this.#deposit * this.#firstTries.total(0));
    this.#earned = Math.min(this.#earned + millionths, most);
  }
}
