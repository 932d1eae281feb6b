/** Rate limits that several processes share. */
export interface RateLimits {
  /**
   * Checks requests against their limits. Returns one answer per request, in the same order. Each request sees what
   * earlier requests have used.
   */
  take(requests: readonly RateRequest[]): Promise<readonly RateAnswer[]>;
  /** Resets keys: they may use their full burst again. */
  forget(keys: readonly string[]): Promise<void>;
}

/** A request that must pass several limits. If one limit refuses the request, it uses nothing of the other limits. */
export type RateRequest = readonly RateTake[];

/** One limit to take from. All takes of a call succeed together, or none does. */
export interface RateTake {
  readonly key: string;
  readonly ratePerMs: number;
  /** The most cost that is allowed in one moment, after a time without requests. */
  readonly burst: number;
  /** How much of the limit the request uses; 1 by default. With 0, the request only reads the limit. */
  readonly cost?: number;
}

/** Whether a take is allowed. If not, nothing was taken and `waitMs` says when to try again. */
export interface RateAnswer {
  readonly allowed: boolean;
  /** The time until the request is allowed: 0 means now, Infinity means never. */
  readonly waitMs: number;
  /** What is left of each limit, in the order of the request. */
  readonly left: readonly RateLeft[];
}

/** What is left of one limit, and the ms until it is full again. */
export interface RateLeft {
  /** How much cost is allowed now. It may be a fraction. */
  readonly tokens: number;
  /** The time until the full burst is available again. */
  readonly fullInMs: number;
}
