export interface Rate {
  readonly ratePerMs: number;
  /** The total cost that may pass without a wait after a time without calls. */
  readonly burst: number;
}

/**
 * Returns the ms to wait before `cost` may pass. 0: now. Infinity: never, because `cost` is above the burst.
 *
 * The state of the limit is one number, `tat` (theoretical arrival time): the time at which the cost admitted so far
 * would be used up at the given rate. It is 0 for a limit that was never used. The functions are pure, so that a server
 * stores only one number for each key.
 */
export function gcraWait(rate: Rate, tat: number, now: number, cost: number): number {
  if (cost > rate.burst) return Infinity;
  const waitMs = Math.max(tat, now) - now - (rate.burst - cost) / rate.ratePerMs;
  // Sums of fractions drift, so a thousandth of an interval counts as no wait. `tat` is not rounded, so errors do not
  // add up.
  return waitMs * rate.ratePerMs < 0.001 ? 0 : waitMs;
}

/** Returns the new `tat` after `cost` was admitted. */
export function gcraTake(rate: Rate, tat: number, now: number, cost: number): number {
  return Math.max(tat, now) + cost / rate.ratePerMs;
}

/** A rate limit that stores its own `tat`. When `update` gives the policy new settings, only `tat` is copied. */
export class Gcra {
  readonly rate: Rate;
  tat = 0;

  constructor(rate: Rate) {
    this.rate = rate;
  }

  /**
   * Takes `cost` from the limit and returns the ms to wait before the call may go on. If the wait is longer than
   * `maxWaitMs`, it takes nothing and returns −1. A cost that was taken cannot be given back: later calls wait longer.
   */
  reserve(now: number, maxWaitMs: number, cost = 1): number {
    const waitMs = this.peek(now, cost);
    if (waitMs > maxWaitMs || waitMs === Infinity) return -1;
    this.tat = gcraTake(this.rate, this.tat, now, cost);
    return waitMs;
  }

  /** Returns the ms that a call with this `cost` would have to wait now; Infinity if `cost` is above the burst. */
  peek(now: number, cost = 1): number {
    return gcraWait(this.rate, this.tat, now, cost);
  }

  /** Returns the cost that may pass now without a wait, like the tokens of a token bucket. It can have a fraction. */
  tokens(now: number): number {
    return Math.max(0, this.rate.burst - Math.max(0, this.tat - now) * this.rate.ratePerMs);
  }
}
