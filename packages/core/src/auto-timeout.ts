import type { Latency } from './latency.ts';

const FACTOR = 3;
const QUANTILE = 0.999;
const LEAST_MS = 50;
const SAMPLES_MIN = 1_000;

/** Each attempt has at least this share of the patience while little is known. */
const SHARES_MAX = 10;

/**
 * How long to wait for one attempt, from how long answers take: three times what all but one in a thousand need.
 *
 * Only answers teach. An attempt that was given up says that there was none, not how long it would have taken: a network
 * that loses messages must not make the limit grow until no time is left for a retry. But a limit that has become too
 * short would never see the answers it needs, so there are two ways up, as TCP has them for its retransmissions:
 *
 * - With each attempt that is given up, and none answered in between, the limit doubles, up to an equal share of the patience
 *   that is left. It is back at its own with the first answer that needed no more.
 * - The last attempt has all the patience that is left: nothing comes after it that time could be saved for.
 */
export class AutoTimeout {
  readonly #latency: Latency;
  #stretch = 1;

  /** `latency` is told of the answered attempts by its owner. */
  constructor(latency: Latency) {
    this.#latency = latency;
  }

  /** An attempt has ended, or was given up after `durationMs`. */
  settle(durationMs: number, answered: boolean, givenUp: boolean): void {
    // Of many that were sent under one limit, only the first to be given up doubles it.
    if (givenUp) {
      if (durationMs >= this.#figureMs() * this.#stretch) this.#stretch *= 2;
    } else if (answered && this.#stretch > 1 && durationMs <= this.#figureMs()) this.#stretch = 1;
  }

  /** How long the next attempt may take: never more than the patience that is left, nor otherwise less than 50 ms. */
  limitMs(patienceLeftMs: number, attemptsLeft: number): number {
    const shareMs = patienceLeftMs / Math.min(attemptsLeft, SHARES_MAX);
    if (attemptsLeft <= 1 || this.#latency.samples < SAMPLES_MIN) return shareMs;
    const figureMs = this.#figureMs();
    return Math.min(patienceLeftMs, Math.max(figureMs, Math.min(figureMs * this.#stretch, shareMs)));
  }

  #figureMs(): number {
    return Math.max(LEAST_MS, FACTOR * this.#latency.quantile(QUANTILE));
  }
}
