export interface Rate {
  readonly ratePerMs: number;
  /** The cost that may pass at once after a while without calls. */
  readonly burst: number;
}

/**
 * Returns the ms to wait before `cost` may pass. 0: now. Infinity: never, because `cost` is above the burst.
 *
 * The state of the limit is one number, `tat` (theoretical arrival time): when the rate will have made up for all
 * admitted cost. It is 0 for a limit that was never used. The functions are pure, so that a server stores only one
 * number for each key.
 */
export function gcraWait(rate: Rate, tat: number, now: number, cost: number): number {
  if (cost > rate.burst) return Infinity;
  const waitMs = Math.max(tat, now) - now - (rate.burst - cost) / rate.ratePerMs;
  // Sums of fractions drift, so a thousandth of an interval counts as no wait. `tat` is not rounded, so errors do not
  // add up.
  return waitMs * rate.ratePerMs < 0.001 ? 0 : waitMs;
}

/** The `tat` after `cost` was admitted. */
export function gcraTake(rate: Rate, tat: number, now: number, cost: number): number {
  return Math.max(tat, now) + cost / rate.ratePerMs;
}

/** A rate limit that holds its own `tat`, which is all that is copied when `update` gives the policy new settings. */
export class Gcra {
  readonly rate: Rate;
  tat = 0;

  constructor(rate: Rate) {
    this.rate = rate;
  }

  /**
   * Takes `cost` and returns the ms to wait before the call may go on. If that is more than `maxWaitMs`, it takes
   * nothing and returns −1. What was taken cannot be given back: later calls wait longer.
   */
  reserve(now: number, maxWaitMs: number, cost = 1): number {
    const waitMs = this.peek(now, cost);
    if (waitMs > maxWaitMs || waitMs === Infinity) return -1;
    this.tat = gcraTake(this.rate, this.tat, now, cost);
    return waitMs;
  }

  /** The ms that `cost` would have to wait now; Infinity if it is above the burst. */
  peek(now: number, cost = 1): number {
    return gcraWait(this.rate, this.tat, now, cost);
  }

  /** The limit seen as a token bucket: the cost that may pass at once now, with a fraction. */
  tokens(now: number): number {
    return Math.max(0, this.rate.burst - Math.max(0, this.tat - now) * this.rate.ratePerMs);
  }
}
