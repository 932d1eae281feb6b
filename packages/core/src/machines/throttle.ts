import { SlidingCounts } from './sliding-counts.ts';

/** How many requests are sent to a target that refuses many of them. */
export interface ThrottleSettings {
  /** About `k` requests are sent for each request that the target accepts. Choose a number above 1. */
  readonly k: number;
  readonly windowMs: number;
}

const REQUESTS = 0;
const ACCEPTS = 1;

/**
 * Sends fewer requests to a target that refuses many. Some requests are refused locally, without being sent.
 * The probability is from Google's SRE book: max(0, (requests − k × accepts) / (requests + 1)).
 *
 * `requests` includes the requests that are refused locally. A request that is sent is counted only when its
 * answer arrives. Otherwise, after a start with k near 1, nearly all requests would be refused.
 */
export class Throttle {
  readonly #k: number;
  readonly #counts: SlidingCounts;

  constructor(settings: ThrottleSettings) {
    this.#k = settings.k;
    this.#counts = new SlidingCounts(2, settings.windowMs);
  }

  /**
   * Decides whether to refuse a request locally, and counts the refusal. `roll` is a random number in [0, 1).
   */
  refuses(now: number, roll: number): boolean {
    const refused = roll < this.chance(now);
    if (refused) this.#counts.add(REQUESTS);
    return refused;
  }

  /**
   * Reports that the target accepted a request. An answer that the request is invalid counts as accepted too.
   */
  accept(now: number): void {
    this.reject(now);
    this.#counts.add(ACCEPTS);
  }

  /** Reports that the target did not accept a request. Do not report requests that the caller cancelled. */
  reject(now: number): void {
    this.#counts.turn(now);
    this.#counts.add(REQUESTS);
  }

  /** Copies the counts of `other`. */
  takeOver(other: Throttle, now: number): void {
    this.#counts.restore(other.#counts.save(now), now);
  }

  /** Returns the probability that a request is refused locally, in [0, 1). */
  chance(now: number): number {
    this.#counts.turn(now);
    const requests = this.#counts.total(REQUESTS);
    return Math.max(0, (requests - this.#k * this.#counts.total(ACCEPTS)) / (requests + 1));
  }
}
