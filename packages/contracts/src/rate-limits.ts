/** Rate limits that several processes share. */
export interface RateLimits {
  /**
   * Checks requests against their limits. Returns one answer per request. Each request sees what earlier
   * requests of the batch have used.
   */
  take(requests: readonly RateRequest[]): Promise<readonly RateAnswer[]>;
  /** Resets keys: each key has its full burst again. */
  forget(keys: readonly string[]): Promise<void>;
}

/**
 * A request that must pass several limits. If one limit refuses the request, the request uses nothing of the
 * other limits.
 */
export type RateRequest = readonly RateTake[];

/** One limit that a request must pass. The request uses all its limits, or none of them. */
export interface RateTake {
  readonly key: string;
  readonly ratePerMs: number;
  /** The most cost that is allowed at once, after a time without requests. */
  readonly burst: number;
  /**
   * How much of the limit the request uses; 1 by default. 0 uses nothing: the answer only shows the state of
   * the limit.
   */
  readonly cost?: number;
}

/** Whether a request is allowed. If not, nothing was used, and `waitMs` says when to try again. */
export interface RateAnswer {
  readonly allowed: boolean;
  /** The ms until the request would be allowed: 0 means now, Infinity means never. */
  readonly waitMs: number;
  /** The remaining capacity of each limit, in the order of the request. */
  readonly left: readonly RateLeft[];
}

/** The remaining capacity of one limit. */
export interface RateLeft {
  /** How much cost is allowed now. It can be a fraction. */
  readonly tokens: number;
  /** The ms until the full burst is available again. */
  readonly fullInMs: number;
}
