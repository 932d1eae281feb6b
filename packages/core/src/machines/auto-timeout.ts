import type { Latency } from './latency.ts';

const TAIL_FACTOR = 3;
const TAIL = 0.999;
/**
 * The limit is at least this multiple of the median, so that a service that becomes five times slower does not time
 * out.
 */
const MEDIAN_FACTOR = 6;
const LEAST_MS = 50;
const SAMPLES_MIN = 1_000;

/** While fewer than SAMPLES_MIN answers are known, the limit is at least this multiple of the longest answer. */
const LONGEST_FACTOR = 2;

/** Patience (the time limit of the whole work) is divided among at most this many attempts. */
const SHARES_MAX = 10;

/**
 * Computes the time limit of one attempt. It is learnt from at least 1,000 answers: three times their p99.9, or six
 * times their median where that is longer. "Patience" is the time limit of the whole work.
 *
 * Only answers are samples. A timeout shows that no answer came, not how long it would have taken: a network that loses
 * messages must not make the limit grow until no time is left for a retry. But with a limit that is too short, slower
 * answers would never be measured. So a timeout makes the limit longer until an answer arrives within the old limit:
 *
 * - While fewer than 1,000 answers are known, the limit is an equal share of the patience, or twice the longest answer
 *   if that is more. After a timeout, attempts that reach the limit may go on until patience ends.
 * - Once the limit is learnt, it doubles with each timeout in a row, up to an equal share of the patience.
 *
 * The last attempt may use all the patience that is left, because no later attempt needs any of it.
 */
export class AutoTimeout {
  readonly #latency: Latency;
  #stretch = 1;

  /** `latency` must contain the durations of the answered attempts. The caller records them. */
  constructor(latency: Latency) {
    this.#latency = latency;
  }

  get isLearnt(): boolean {
    return this.#latency.samples >= SAMPLES_MIN;
  }

  /** Reports that an attempt ended or timed out after `durationMs`. `shareMs` was its equal share of the patience. */
  settle(durationMs: number, answered: boolean, timedOut: boolean, shareMs: number): void {
    const isQuestioned = timedOut || (answered && this.#stretch > 1);
    if (!isQuestioned) return;
    const limitMs = this.isLearnt ? this.#learntMs() : this.#unlearntMs(shareMs);
    // When many attempts time out under the same limit, only the first doubles it. The 1 ms allows for rounded
    // durations.
    if (timedOut && durationMs >= limitMs * this.#stretch - 1) this.#stretch *= 2;
    if (!timedOut && durationMs <= limitMs) this.#stretch = 1;
  }

  /**
   * The time limit of the next attempt: at least 50 ms as soon as the limit is learnt, but never more than the patience
   * (the time limit of the whole work) that is left.
   */
  limitMs(patienceLeftMs: number, attemptsLeft: number): number {
    if (attemptsLeft <= 1) return patienceLeftMs;
    const shareMs = patienceLeftMs / Math.min(attemptsLeft, SHARES_MAX);
    if (!this.isLearnt) return Math.min(patienceLeftMs, this.#unlearntMs(shareMs));
    const learntMs = this.#learntMs();
    return Math.min(patienceLeftMs, Math.max(learntMs, Math.min(learntMs * this.#stretch, shareMs)));
  }

  /** Whether attempts may go on after the limit until patience ends, because the limit seems too short. */
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
