export interface Rate {
  readonly ratePerMs: number;
  /** The total cost that may pass at once after an idle time. */
  readonly burst: number;
}

/**
 * Returns the ms to wait before a call with this `cost` may pass; Infinity if `cost` is above the burst.
 *
 * `tat` (theoretical arrival time) is the time at which all admitted calls would have passed at an even rate.
 * It starts at 0. It is the whole state of the limit, so a server stores only this number for each key.
 */
export function gcraWait(rate: Rate, tat: number, now: number, cost: number): number {
  if (cost > rate.burst) return Infinity;
  const waitMs = Math.max(tat, now) - now - (rate.burst - cost) / rate.ratePerMs;
  // Sums of fractions are inexact. So a wait of less than a thousandth of the time for one call is rounded to
  // 0.
  return waitMs * rate.ratePerMs < 0.001 ? 0 : waitMs;
}

/** Returns the new `tat` (theoretical arrival time) after a call with this `cost` was admitted. */
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
   * Admits a call with this `cost` and returns the ms to wait before making it. If the wait would be longer
   * than `maxWaitMs`, nothing is admitted and the result is −1. The cost of an admitted call cannot be given
   * back.
   */
  reserve(now: number, maxWaitMs: number, cost = 1): number {
    const waitMs = this.peek(now, cost);
    if (waitMs > maxWaitMs || waitMs === Infinity) return -1;
    this.tat = gcraTake(this.rate, this.tat, now, cost);
    return waitMs;
  }

  /** Returns the ms that a call with this `cost` must wait now; Infinity if `cost` is above the burst. */
  peek(now: number, cost = 1): number {
    return gcraWait(this.rate, this.tat, now, cost);
  }

  /** Returns how much cost may pass now without a wait. The number can have a fraction. */
  tokens(now: number): number {
    return Math.max(0, this.rate.burst - Math.max(0, this.tat - now) * this.rate.ratePerMs);
  }
}
