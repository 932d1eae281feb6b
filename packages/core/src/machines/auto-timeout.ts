import type { Latency } from './latency.ts';

const TAIL_FACTOR = 3;
const TAIL = 0.999;
/** A service that becomes five times slower is not sick: its answers come within six times the median. */
const MEDIAN_FACTOR = 6;
const LEAST_MS = 50;
const SAMPLES_MIN = 1_000;

/** While unlearnt, an attempt has at least this multiple of the longest answer seen. */
const LONGEST_FACTOR = 2;

/** Each attempt has at least this share of the patience while little is known. */
const SHARES_MAX = 10;

/**
 * How long one attempt may take, learnt from the last 1,000 answers or more: three times their p99.9, or six times their
 * median where that is longer.
 *
 * Only answers teach. An attempt that timed out says that there was no answer, not how long it would have taken: a
 * network that loses messages must not make the limit grow until no time is left for a retry. But a limit that is too
 * short would never see the answers it needs, so a timeout makes it longer until an answer comes within the old limit:
 *
 * - Unlearnt, with fewer than 1,000 answers, the limit is an equal share of the patience, or twice the longest answer. After
 *   the first timeout, attempts whose time is up go on until their patience ends.
 * - Learnt, it doubles with each timeout in a row, up to a share of the patience.
 *
 * The last attempt always has all the patience that is left: nothing comes after it that time could be saved for.
 */
export class AutoTimeout {
  readonly #latency: Latency;
  #stretch = 1;

  /** Its owner records the answered attempts in `latency`. */
  constructor(latency: Latency) {
    this.#latency = latency;
  }

  get isLearnt(): boolean {
    return this.#latency.samples >= SAMPLES_MIN;
  }

  /** An attempt has ended, or timed out after `durationMs`. `shareMs` is the share of patience that it had. */
  settle(durationMs: number, answered: boolean, timedOut: boolean, shareMs: number): void {
    const isQuestioned = timedOut || (answered && this.#stretch > 1);
    if (!isQuestioned) return;
    const limitMs = this.isLearnt ? this.#learntMs() : this.#unlearntMs(shareMs);
    // Of many attempts that were sent under one limit, only the first to time out doubles it. Durations are rounded.
    if (timedOut && durationMs >= limitMs * this.#stretch - 1) this.#stretch *= 2;
    if (!timedOut && durationMs <= limitMs) this.#stretch = 1;
  }

  /** How long the next attempt may take: never more than the patience that is left, nor otherwise less than 50 ms. */
  limitMs(patienceLeftMs: number, attemptsLeft: number): number {
    if (attemptsLeft <= 1) return patienceLeftMs;
    const shareMs = patienceLeftMs / Math.min(attemptsLeft, SHARES_MAX);
    if (!this.isLearnt) return Math.min(patienceLeftMs, this.#unlearntMs(shareMs));
    const learntMs = this.#learntMs();
    return Math.min(patienceLeftMs, Math.max(learntMs, Math.min(learntMs * this.#stretch, shareMs)));
  }

  /** Whether attempts go on when their time is up, because the limit may be too short. */
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
