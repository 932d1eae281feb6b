/**
 * Rate limits that several processes share. The engine stores one number per key: the time at which the full burst is
 * available again.
 */
export interface RateLimits {
  /**
   * Checks requests against their limits. Returns one answer per request, in the same order. Each request sees how much
   * the requests before it took from the limits.
   */
  take(requests: readonly RateRequest[]): Promise<readonly RateAnswer[]>;
  /** Resets keys: their full burst is available again. */
  forget(keys: readonly string[]): Promise<void>;
}

/**
 * A request to which several limits apply. If one limit refuses the request, nothing is taken from the other limits.
 */
export type RateRequest = readonly RateTake[];

export interface RateTake {
  readonly key: string;
  readonly ratePerMs: number;
  /** How much cost is allowed in one moment after a time without requests. */
  readonly burst: number;
  /** How much this request takes from the limit; 1 unless given. 0 takes nothing and only reads the limit. */
  readonly cost?: number;
}

export interface RateAnswer {
  readonly allowed: boolean;
  /** The time until all limits would allow the request: 0 if it is allowed now, Infinity if it can never be allowed. */
  readonly waitMs: number;
  /** What is left of each limit, in the order of the request. */
  readonly left: readonly RateLeft[];
}

export interface RateLeft {
  /** How much cost is allowed now, not rounded. */
  readonly tokens: number;
  /** The time until the full burst is available again. */
  readonly fullInMs: number;
}
