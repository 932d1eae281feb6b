export interface Rate {
  readonly ratePerMs: number;
  /** How much may pass at once after a rest. */
  readonly burst: number;
}

/**
 * A rate limit in one number: `tat`, the time at which everything that was let through will have been paid for at the
 * given rate. 0 is a limit that was never used. The functions are pure, so that a server keeps a number a key.
 *
 * Gives how long to wait before `cost` may pass: 0 now, Infinity never (more than the burst).
 */
export function gcraWait(rate: Rate, tat: number, now: number, cost: number): number {
  if (cost > rate.burst) return Infinity;
  const waitMs = Math.max(tat, now) - now - (rate.burst - cost) / rate.ratePerMs;
  // Sums of fractions drift. A thousandth of an interval is forgiven, and as `tat` is not moved it does not add up.
  return waitMs * rate.ratePerMs < 0.001 ? 0 : waitMs;
}

/** The `tat` after `cost` was let through. */
export function gcraTake(rate: Rate, tat: number, now: number, cost: number): number {
  return Math.max(tat, now) + cost / rate.ratePerMs;
}

/** A rate limit with its own `tat`, which is all that a reload has to carry over. */
export class Gcra {
  readonly rate: Rate;
  tat = 0;

  constructor(rate: Rate) {
    this.rate = rate;
  }

  /**
   * Takes `cost` and says how many ms to wait before going on; −1, and nothing taken, when that would be more
   * than `maxWaitMs`. Who waits keeps its place: those who come later wait longer. A place is not given back.
   */
  reserve(now: number, maxWaitMs: number, cost = 1): number {
    const waitMs = this.peek(now, cost);
    if (waitMs > maxWaitMs || waitMs === Infinity) return -1;
    this.tat = gcraTake(this.rate, this.tat, now, cost);
    return waitMs;
  }

  /** How long `cost` would have to wait now: Infinity when it is more than the burst. */
  peek(now: number, cost = 1): number {
    return gcraWait(this.rate, this.tat, now, cost);
  }

  /** The same limit seen as a bucket: what may pass at once now, with a fraction. */
  tokens(now: number): number {
    return Math.max(0, this.rate.burst - Math.max(0, this.tat - now) * this.rate.ratePerMs);
  }
}
