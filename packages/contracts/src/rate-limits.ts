/** Rate limits that many processes share. One number is stored per key: the time at which its full burst is available again. */
export interface RateLimits {
  /** Returns one answer per request, in the same order. Each request sees what those before it took. */
  take(requests: readonly RateRequest[]): Promise<readonly RateAnswer[]>;
  /** Resets keys, as if they had never been used. */
  forget(keys: readonly string[]): Promise<void>;
}

/** Limits that are taken together or not at all: if one refuses, nothing is taken from the others. */
export type RateRequest = readonly RateTake[];

export interface RateTake {
  readonly key: string;
  readonly ratePerMs: number;
  /** The most cost that is allowed at once, after a time without requests. */
  readonly burst: number;
  /** 1 unless given; 0 takes nothing and only reads. */
  readonly cost?: number;
}

export interface RateAnswer {
  readonly allowed: boolean;
  /** The time until all limits would allow the request: 0 when allowed, Infinity when they never will. */
  readonly waitMs: number;
  /** What each limit still has, in the order of the request. */
  readonly left: readonly RateLeft[];
}

export interface RateLeft {
  /** The cost that is allowed at once now; not rounded. */
  readonly tokens: number;
  /** The time until the full burst is available again. */
  readonly fullInMs: number;
}
