export interface AdaptiveLimitSettings {
  readonly initial: number;
  readonly floor: number;
  readonly ceiling: number;
}

/**
 * Answers are counted in windows. A window lasts at least WINDOW_MS and at least one mean latency. It ends when it has
 * ANSWERS_MIN answers; where answers are rare, the window ends after PATIENT_WINDOWS times the minimum length.
 */
const WINDOW_MS = 100;
const ANSWERS_MIN = 50;
const PATIENT_WINDOWS = 5;

/** The limit is this multiple of the calls being processed, so that a short queue keeps the target busy. */
const HEADROOM = 1.25;

/**
 * A limit that was reached is multiplied by GROWTH each window, or by GROWTH_FREE while latency is below FREE times the
 * base (the latency without a queue).
 */
const GROWTH = 1.05;
const GROWTH_FREE = 1.15;
const FREE = 1.1;

/**
 * A limit that is too high shrinks towards the limit that Little's law gives: by SHRINK_WEIGHT of the difference, or by
 * SHRINK_SOON_WEIGHT when latency was above FAR times the base for two windows.
 */
const SHRINK_WEIGHT = 0.3;
const SHRINK_SOON_WEIGHT = 0.6;
const FAR = 2.5;

/**
 * The weight of one window in the moving averages: RECENT_WEIGHT in the recent latency, BASE_WEIGHT and MEASURED_WEIGHT
 * in the base (the latency without a queue). A latency that differs from the base by more than the factor CLEARLY
 * replaces the base immediately.
 */
const RECENT_WEIGHT = 0.3;
const BASE_WEIGHT = 0.2;
const MEASURED_WEIGHT = 0.5;
const CLEARLY = 1.5;

/**
 * During this number of first windows the limit does not grow, and the base (the latency without a queue) follows the
 * recent latency.
 */
const WARM_UP_WINDOWS = 5;

/**
 * The base (the latency without a queue) is measured again after REACHED_WINDOWS windows at the limit, at most once in
 * MEASURE_MS. While latency is above CLEARLY times the base, the base is measured again after MEASURE_SOON_MS.
 */
const REACHED_WINDOWS = 5;
const MEASURE_MS = 10_000;
const MEASURE_SOON_MS = 1_000;

/** When the share of dropped calls in a window is above DROPPED_MAX, the limit is multiplied by DROPPED_FACTOR. */
const DROPPED_MAX = 0.1;
const DROPPED_FACTOR = 0.8;

/**
 * Limits the calls in flight, and finds the limit from the answers. Answers per ms × latency without a queue is the number
 * of calls being processed (Little's law); a quarter more may queue.
 *
 * The latency without a queue (the base) cannot be measured while there is a queue. Using the lowest recent latency
 * instead makes such limits creep upward. So every 10 s at the limit, or after 1 s while latency is high, the limit is
 * lowered to half or less for two windows: in the first the queue drains, in the second the base is measured.
 *
 * Dropped calls count neither as answers nor in the latency, so that failing fast never looks like capacity. The limit
 * grows only when it is reached.
 */
export class AdaptiveLimit {
  inFlight = 0;

  readonly #settings: AdaptiveLimitSettings;
  #limit: number;
  /** The recent latency, and the base: the latency without a queue. 0 while unknown. */
  #recentMs = 0;
  #baseMs = 0;
  /** How many windows of a measurement are left. 2: the queue drains. 1: the base is measured. 0: no measurement. */
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

  /** Calls that may be in flight now; a whole number. */
  get limit(): number {
    return Math.max(this.#settings.floor, Math.floor(this.#measuring > 0 ? this.#lowered : this.#limit));
  }

  onStart(): void {
    this.inFlight++;
    if (this.inFlight > this.#peak) this.#peak = this.inFlight;
  }

  /** `dropped`: the call failed in a way that indicates overload (timeout, 429, 503, refused). */
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

  /** The caller cancelled the call: its duration is not counted. */
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
      // While latency falls, the base falls with it. So a latency close to the base does not prove that the queue is
      // empty: the latency must not be far below the base either.
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
