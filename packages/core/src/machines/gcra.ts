export interface Rate {
  readonly ratePerMs: number;
  /** The cost that may pass without a wait after an idle time. */
  readonly burst: number;
}

/**
 * Returns the ms to wait before `cost` may pass; Infinity if `cost` is above the burst.
 *
 * `tat` (theoretical arrival time) is the whole state of the limit, so a server stores one number for each key. It is
 * the time at which the admitted cost would be used up at this rate, and 0 at first.
 */
export function gcraWait(rate: Rate, tat: number, now: number, cost: number): number {
  if (cost > rate.burst) return Infinity;
  const waitMs = Math.max(tat, now) - now - (rate.burst - cost) / rate.ratePerMs;
  // Sums of fractions are inexact, so a wait of less than a thousandth of an interval is rounded to 0.
  return waitMs * rate.ratePerMs < 0.001 ? 0 : waitMs;
}

/** Returns the new `tat` after `cost` was admitted. */
export function gcraTake(rate: Rate, tat: number, now: number, cost: number): number {
  return Math.max(tat, now) + cost / rate.ratePerMs;
}

/** A rate limit that stores its own `tat` (theoretical arrival time). */
export class Gcra {
  readonly rate: Rate;
  tat = 0;

  constructor(rate: Rate) {
    this.rate = rate;
  }

  /**
   * Takes `cost` and returns the ms to wait before the call. If the wait is longer than `maxWaitMs`, it takes nothing
   * and returns −1. A cost that was taken cannot be given back.
   */
  reserve(now: number, maxWaitMs: number, cost = 1): number {
    const waitMs = this.peek(now, cost);
    if (waitMs > maxWaitMs || waitMs === Infinity) return -1;
    this.tat = gcraTake(this.rate, this.tat, now, cost);
    return waitMs;
  }

  /** Returns the ms that a call would have to wait now; Infinity if `cost` is above the burst. */
  peek(now: number, cost = 1): number {
    return gcraWait(this.rate, this.tat, now, cost);
  }

  /** Returns the cost that may pass now without a wait. It can have a fraction. */
  tokens(now: number): number {
    return Math.max(0, this.rate.burst - Math.max(0, this.tat - now) * this.rate.ratePerMs);
  }
}
