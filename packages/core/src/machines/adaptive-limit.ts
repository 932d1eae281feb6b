/** The first value of the limit, and its minimum (`floor`) and maximum (`ceiling`), in calls in flight. */
export interface AdaptiveLimitSettings {
  readonly initial: number;
  readonly floor: number;
  readonly ceiling: number;
}

/**
 * The limit is adjusted once per window of answers. A window lasts at least WINDOW_MS, or the mean latency if
 * that is longer. If it has fewer than ANSWERS_MIN answers then, it continues, up to PATIENT_WINDOWS times
 * that minimum.
 */
const WINDOW_MS = 100;
const ANSWERS_MIN = 50;
const PATIENT_WINDOWS = 5;

/**
 * The limit is this multiple of the number of calls that the target processes at a time. The extra calls form
 * a short queue at the target, so that it is never idle.
 */
const HEADROOM = 1.25;

/**
 * In each window in which the limit was reached, the limit is multiplied by GROWTH. If the latency is below FREE ×
 * the latency without a queue, the target seems to have no queue, and the limit is multiplied by GROWTH_FREE.
 */
const GROWTH = 1.05;
const GROWTH_FREE = 1.15;
const FREE = 1.1;

/**
 * In each window, a limit that is too high moves towards the right value by this share of the difference.
 * SHRINK_SOON_WEIGHT is used after two windows in a row with a latency above FAR × the latency without a
 * queue.
 */
const SHRINK_WEIGHT = 0.3;
const SHRINK_SOON_WEIGHT = 0.6;
const FAR = 2.5;

/**
 * The weight of the newest window in two moving averages. RECENT_WEIGHT is for the present latency. For the latency
 * without a queue, BASE_WEIGHT is used if at most half of the limit was in use, and MEASURED_WEIGHT if the limit was
 * lowered to measure it. If it has changed by more than the factor CLEARLY, the new value replaces the average.
 */
const RECENT_WEIGHT = 0.3;
const BASE_WEIGHT = 0.2;
const MEASURED_WEIGHT = 0.5;
const CLEARLY = 1.5;

/** The limit does not grow in the first windows, because the latency without a queue is not known yet. */
const WARM_UP_WINDOWS = 5;

/**
 * The latency without a queue is measured again when the latency is high, or after REACHED_WINDOWS windows at
 * the limit. Two measurements are at least MEASURE_MS apart, or MEASURE_SOON_MS while the latency is high.
 */
const REACHED_WINDOWS = 5;
const MEASURE_MS = 10_000;
const MEASURE_SOON_MS = 1_000;

/**
 * Calls that fail by overload count as dropped. If their share of a window is above DROPPED_MAX, the limit is
 * multiplied by DROPPED_FACTOR.
 */
const DROPPED_MAX = 0.1;
const DROPPED_FACTOR = 0.8;

/**
 * Limits the calls in flight, and learns the limit from the answers. The limit is 1.25 × the number of calls
 * that the target processes at a time. By Little's law, that number is answers per ms × latency without a
 * queue.
 *
 * The latency without a queue cannot be measured while calls wait at the target. So from time to time the
 * limit is lowered to half or less for two windows. In the first window the queue drains, and in the second
 * the latency is measured.
 *
 * Calls that fail by overload do not count as answers. Otherwise fast failures would look like a high
 * capacity.
 */
export class AdaptiveLimit {
  inFlight = 0;

  readonly #settings: AdaptiveLimitSettings;
  #limit: number;
  /** `#recentMs` is the recent latency, and `#baseMs` the latency without a queue. 0: unknown. */
  #recentMs = 0;
  #baseMs = 0;
  /**
   * How many windows of the current measurement are left. 2: the queue drains. 1: the latency is measured. 0:
   * no measurement is going on.
   */
  #measuring = 0;
  #lowered = 0;
  #measureAt = -Infinity;
  #reachedWindows = 0;
  #isFar = false;

  #windows = 0;
  #startedAt = -Infinity;
  #windowMs = WINDOW_MS;
  #answers = 0;
  #dropped = 0;
  #sumMs = 0;
  #peak = 0;

  constructor(settings: AdaptiveLimitSettings) {
    this.#settings = settings;
    this.#limit = settings.initial;
  }

  /** How many calls may be in flight now. */
  get limit(): number {
    return Math.max(this.#settings.floor, Math.floor(this.#measuring > 0 ? this.#lowered : this.#limit));
  }

  onStart(): void {
    this.inFlight++;
    if (this.inFlight > this.#peak) this.#peak = this.inFlight;
  }

  /**
   * Reports the end of a call. `dropped`: it failed in a way that indicates overload (timeout, 429, 503,
   * refused).
   */
  onEnd(now: number, durationMs: number, dropped: boolean): void {
    this.inFlight--;
    if (dropped) this.#dropped++;
    else {
      this.#answers++;
      this.#sumMs += durationMs;
    }
    const elapsedMs = now - this.#startedAt;
    if (elapsedMs < this.#windowMs) return;
    const enough =
      this.#answers + this.#dropped >= ANSWERS_MIN || elapsedMs >= PATIENT_WINDOWS * this.#windowMs;
    if (!enough && this.#measuring !== 2) return;
    if (elapsedMs < Infinity) this.#learn(now, elapsedMs);
    this.#startedAt = now;
    this.#answers = this.#dropped = this.#sumMs = 0;
    this.#peak = this.inFlight;
  }

  /** Reports that the caller cancelled a call. Its duration is not counted. */
  onCancel(): void {
    this.inFlight--;
  }

  #learn(now: number, elapsedMs: number): void {
    const meanMs = this.#answers > 0 ? this.#sumMs / this.#answers : this.#baseMs;
    this.#windowMs = Math.max(WINDOW_MS, meanMs);
    if (this.#measuring > 0) {
      this.#windowMs *= 2;
      if (--this.#measuring === 0) this.#measured(meanMs, MEASURED_WEIGHT);
      return;
    }
    this.#recentMs += (meanMs - this.#recentMs) * (this.#recentMs === 0 ? 1 : RECENT_WEIGHT);
    const warm = ++this.#windows > WARM_UP_WINDOWS;
    if (!warm || this.#recentMs < this.#baseMs) this.#baseMs = this.#recentMs;
    if (this.#peak <= this.#limit / 2) this.#measured(meanMs, BASE_WEIGHT);

    const reached = this.#peak >= this.limit;
    const inflation = this.#recentMs / this.#baseMs;
    const wasFar = this.#isFar;
    this.#isFar = inflation > FAR;
    if (this.#dropped > DROPPED_MAX * (this.#answers + this.#dropped)) this.#limit *= DROPPED_FACTOR;
    else if (inflation > (reached ? HEADROOM : CLEARLY)) {
      const fits = (this.#answers / elapsedMs) * this.#baseMs * HEADROOM + 1;
      const weight = wasFar && this.#isFar ? SHRINK_SOON_WEIGHT : SHRINK_WEIGHT;
      this.#limit += Math.min(0, fits - this.#limit) * weight;
    } else if (reached && warm) {
      // A window much faster than `#baseMs` (the latency without a queue) shows that `#baseMs` is too high.
      // In this case a latency near `#baseMs` does not prove that the queue is empty.
      const isFree = inflation < FREE && meanMs > this.#baseMs / FREE;
      this.#limit = this.#limit * (isFree ? GROWTH_FREE : GROWTH) + 1;
    }
    this.#limit = Math.min(this.#settings.ceiling, Math.max(this.#settings.floor, this.#limit));

    this.#reachedWindows = reached ? this.#reachedWindows + 1 : 0;
    if (inflation > CLEARLY) this.#measureAt = Math.min(this.#measureAt, now + MEASURE_SOON_MS);
    if ((inflation > CLEARLY || this.#reachedWindows >= REACHED_WINDOWS) && now >= this.#measureAt) {
      this.#measuring = 2;
      this.#windowMs *= 2;
      this.#measureAt = now + MEASURE_MS;
      this.#lowered = this.#limit / Math.max(2, inflation * HEADROOM);
    }
  }

  #measured(meanMs: number, weight: number): void {
    const change = meanMs / this.#baseMs;
    const clear = change > CLEARLY || change < 1 / CLEARLY;
    this.#baseMs += (meanMs - this.#baseMs) * (clear ? 1 : weight);
  }
}
