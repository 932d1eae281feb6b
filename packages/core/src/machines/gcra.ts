export interface Rate {
  readonly ratePerMs: number;
  /** The cost that may pass at once when nothing has passed for a while. */
  readonly burst: number;
}

/**
 * A rate limit in one number: `tat`, the theoretical arrival time, at which all admitted cost is paid off at the given
 * rate. 0 is a limit that was never used. The functions are pure, so that a server keeps only one number for each key.
 *
 * Returns the ms to wait before `cost` may pass. 0: now. Infinity: never, because `cost` is above the burst.
 */
export function gcraWait(rate: Rate, tat: number, now: number, cost: number): number {
  if (cost > rate.burst) return Infinity;
  const waitMs = Math.max(tat, now) - now - (rate.burst - cost) / rate.ratePerMs;
  // Sums of fractions drift, so a thousandth of an interval counts as no wait. `tat` is unchanged: errors do not add up.
  return waitMs * rate.ratePerMs < 0.001 ? 0 : waitMs;
}

/** The `tat` after `cost` was admitted. */
export function gcraTake(rate: Rate, tat: number, now: number, cost: number): number {
  return Math.max(tat, now) + cost / rate.ratePerMs;
}

/** A rate limit with its own `tat`, the only state that `update` has to carry over. */
export class Gcra {
  readonly rate: Rate;
  tat = 0;

  constructor(rate: Rate) {
    this.rate = rate;
  }

  /**
   * Takes `cost` and returns the ms to wait before going on. −1: that would be more than `maxWaitMs`, and nothing was
   * taken. The reservation holds: later calls wait longer, and it cannot be given back.
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
