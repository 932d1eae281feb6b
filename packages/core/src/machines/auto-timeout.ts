import type { Latency } from './latency.ts';

const TAIL_FACTOR = 3;
const TAIL = 0.999;
/**
 * The time limit of an attempt is at least this multiple of the median duration. So attempts do not time out
 * when a service becomes five times slower.
 */
const MEDIAN_FACTOR = 6;
const LEAST_MS = 50;
const SAMPLES_MIN = 1_000;

/**
 * Before there are SAMPLES_MIN answers, the time limit is at least this multiple of the longest duration so
 * far.
 */
const LONGEST_FACTOR = 2;

const SHARES_MAX = 10;

/**
 * Learns the time limit of one attempt from the durations of answered attempts. The limit is three times
 * their p99.9, or six times their median if that is longer.
 *
 * With fewer than 1,000 answers, each attempt gets an equal share of the patience (the time limit of the
 * whole work), or twice the longest duration so far if that is more. The last attempt gets all the remaining
 * patience.
 *
 * Timeouts are not recorded as durations. But each timeout in a row doubles a learnt limit. Otherwise answers
 * that are slower than the limit would never be recorded.
 */
export class AutoTimeout {
  readonly #latency: Latency;
  #stretch = 1;

  /** `latency` holds the durations of answered attempts. The caller records them. */
  constructor(latency: Latency) {
    this.#latency = latency;
  }

  get isLearnt(): boolean {
    return this.#latency.samples >= SAMPLES_MIN;
  }

  /**
   * Reports that an attempt ended after `durationMs`. `shareMs` is the equal share of the patience (the time
   * limit of the work) that this attempt had.
   */
  settle(durationMs: number, answered: boolean, timedOut: boolean, shareMs: number): void {
    const isQuestioned = timedOut || (answered && this.#stretch > 1);
    if (!isQuestioned) return;
    const limitMs = this.isLearnt ? this.#learntMs() : this.#unlearntMs(shareMs);
    // Many attempts may time out at the same limit, but only the first of these timeouts doubles the limit.
    // The 1 ms allows for rounding.
    if (timedOut && durationMs >= limitMs * this.#stretch - 1) this.#stretch *= 2;
    if (!timedOut && durationMs <= limitMs) this.#stretch = 1;
  }

  /** Returns the time limit of the next attempt in ms, at most `patienceLeftMs`. */
  limitMs(patienceLeftMs: number, attemptsLeft: number): number {
    if (attemptsLeft <= 1) return patienceLeftMs;
    const shareMs = patienceLeftMs / Math.min(attemptsLeft, SHARES_MAX);
    if (!this.isLearnt) return Math.min(patienceLeftMs, this.#unlearntMs(shareMs));
    const learntMs = this.#learntMs();
    return Math.min(patienceLeftMs, Math.max(learntMs, Math.min(learntMs * this.#stretch, shareMs)));
  }

  /**
   * True: no limit is learnt yet, and attempts timed out. The limit seems too short, so attempts may run
   * until the time limit of the work.
   */
  get isLifted(): boolean {
    return this.#stretch > 1 && !this.isLearnt;
  }

  #unlearntMs(shareMs: number): number {
    return Math.max(shareMs, LONGEST_FACTOR * this.#latency.longest);
  }

  #learntMs(): number {
    const tailMs = TAIL_FACTOR * this.#latency.quantile(TAIL);
    return Math.max(LEAST_MS, tailMs, MEDIAN_FACTOR * this.#latency.quantile(0.5));
  }
}
