import { SlidingCounts } from './sliding-counts.ts';

export interface ThrottleSettings {
  /** Sends at most about `k` times what the target accepts. Above 1. */
  readonly k: number;
  readonly windowMs: number;
}

const REQUESTS = 0;
const ACCEPTS = 1;

/**
 * Sends less to a target that refuses much: the rule of the SRE book, max(0, (requests − k × accepts) / (requests + 1)).
 *
 * Its own refusals count as requests, or load would still grow with what is offered. A request that was sent counts when
 * its answer comes, not when it leaves: what is in flight says nothing yet, and counting it would make a cold start
 * with k near 1 refuse nearly everything for a minute.
 */
export class Throttle {
  readonly #k: number;
  readonly #counts: SlidingCounts;

  constructor(settings: ThrottleSettings) {
    this.#k = settings.k;
    this.#counts = new SlidingCounts(2, settings.windowMs);
  }

  /** Whether not to send a request; then it is counted already. `roll` is in [0, 1). */
  refuses(now: number, roll: number): boolean {
    const refused = roll < this.chance(now);
    if (refused) this.#counts.add(REQUESTS);
    return refused;
  }

  /** The target took a request that was sent, even if it answered with an error of the request's own. */
  accept(now: number): void {
    this.reject(now);
    this.#counts.add(ACCEPTS);
  }

  /** The target did not take a request that was sent. One whose caller left is not told at all. */
  reject(now: number): void {
    this.#counts.turn(now);
    this.#counts.add(REQUESTS);
  }

  /** Goes on from what `other` has counted. */
  takeOver(other: Throttle, now: number): void {
    this.#counts.restore(other.#counts.save(now), now);
  }

  /** How likely a request is refused: in [0, 1). */
  chance(now: number): number {
    this.#counts.turn(now);
    const requests = this.#counts.total(REQUESTS);
    return Math.max(0, (requests - this.#k * this.#counts.total(ACCEPTS)) / (requests + 1));
  }
}
