import type { Latency } from './latency.ts';

const FACTOR = 3;
const QUANTILE = 0.999;
const LEAST_MS = 50;
const SAMPLES_MIN = 1_000;

/** Each attempt has at least this share of the patience while little is known. */
const SHARES_MAX = 10;

/** What one outcome weighs in the share of failures, and the share above which the figure is frozen. */
const WEIGHT = 1 / 64;
const FAILING_MAX = 0.1;
const FROZEN_MAX_MS = 600_000;

/**
 * How long to wait for one attempt, from how long they take: three times what all but one in a thousand need.
 *
 * An attempt that was given up counts as twice its limit, so that a limit which is too short grows. While more than a
 * tenth of the attempts fail the figure is frozen: an outage must teach nothing. But it is looked at again every
 * ten minutes, or a target that has become slow for good would be given up on for ever.
 */
export class AutoTimeout {
  readonly #latency: Latency;
  #failing = 0;
  #figureMs = 0;
  #frozenUntil = -Infinity;

  /** `latency` is told of the answered attempts by its owner; of those given up, from here. */
  constructor(latency: Latency) {
    this.#latency = latency;
  }

  /** An attempt has ended, or was given up after `durationMs`. */
  settle(now: number, durationMs: number, answered: boolean, givenUp: boolean): void {
    if (givenUp) this.#latency.record(now, 2 * durationMs);
    this.#failing += ((answered ? 0 : 1) - this.#failing) * WEIGHT;
    if (this.#failing > FAILING_MAX && now < this.#frozenUntil) return;
    this.#frozenUntil = now + FROZEN_MAX_MS;
    this.#figureMs = FACTOR * this.#latency.quantile(QUANTILE);
  }

  /** How long the next attempt may take: never more than the patience that is left, nor otherwise less than 50 ms. */
  limitMs(patienceLeftMs: number, attemptsLeft: number): number {
    const ms =
      this.#latency.samples < SAMPLES_MIN
        ? patienceLeftMs / Math.min(attemptsLeft, SHARES_MAX)
        : this.#figureMs;
    return Math.min(patienceLeftMs, Math.max(LEAST_MS, ms));
  }
}
