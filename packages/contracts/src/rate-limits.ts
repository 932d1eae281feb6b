/** Rate limits that many processes share: one number a key, the time at which all that passed will have been paid for. */
export interface RateLimits {
  /** One answer for each request, in the order given; a request sees what those before it took. */
  take(requests: readonly RateRequest[]): Promise<readonly RateAnswer[]>;
  /** As if never used. */
  forget(keys: readonly string[]): Promise<void>;
}

/** Limits that pass together or not at all: nothing is taken from one if another refuses. */
export type RateRequest = readonly RateTake[];

export interface RateTake {
  readonly key: string;
  readonly ratePerMs: number;
  /** How much may pass at once after a rest. */
  readonly burst: number;
  /** 1 unless given; 0 only looks. */
  readonly cost?: number;
}

export interface RateAnswer {
  readonly allowed: boolean;
  /** Until all of the limits would let it pass; 0 when allowed, Infinity when it never will. */
  readonly waitMs: number;
  /** What each limit still has, in the order given. */
  readonly left: readonly RateLeft[];
}

export interface RateLeft {
  /** What may pass at once now, with a fraction. */
  readonly tokens: number;
  /** Until the whole burst is there again. */
  readonly fullInMs: number;
}
