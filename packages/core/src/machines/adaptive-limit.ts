export interface AdaptiveLimitSettings {
  readonly initial: number;
  readonly floor: number;
  readonly ceiling: number;
}

/** A window lasts so long, or as long as a call if that is longer, and has so many answers unless they are rare. */
const WINDOW_MS = 100;
const ANSWERS_MIN = 50;
const PATIENT_WINDOWS = 5;

/** How much of a queue is allowed: a quarter of what is at work. */
const HEADROOM = 1.25;

/** A limit that is reached grows by so much a window, and by more while there is no sign of a queue. */
const GROWTH = 1.05;
const GROWTH_FREE = 1.15;
const FREE = 1.1;

/** One that is too high goes so far down to the right one; further when it has been far too high for two windows. */
const SHRINK_WEIGHT = 0.3;
const SHRINK_SOON_WEIGHT = 0.6;
const FAR = 2.5;

/** What one window weighs in the latency, and in that without a queue unless it is clearly another. */
const RECENT_WEIGHT = 0.3;
const BASE_WEIGHT = 0.2;
const MEASURED_WEIGHT = 0.5;
const CLEARLY = 1.5;

/** The first windows only warm up. */
const WARM_UP_WINDOWS = 5;

/** The base is measured after so many windows at the limit and so many ms, or earlier while the latency is clearly higher. */
const REACHED_WINDOWS = 5;
const MEASURE_MS = 10_000;
const MEASURE_SOON_MS = 1_000;

/** More than one in ten dropped takes a fifth of the limit. */
const DROPPED_MAX = 0.1;
const DROPPED_FACTOR = 0.8;

/**
 * How many calls may be in flight, found from what comes back: the answers in a ms × the latency without a queue are the
 * calls at work (Little's law), and a quarter more may wait.
 *
 * The latency without a queue cannot be seen while there is one, and taking the lowest of late is how such limits creep
 * upward. So every ten seconds at the limit, or one while the latency is high, at most half of it is let through for two
 * windows: in the first the queue drains, the second is measured.
 *
 * Failures count neither as answers nor in the latency, so that failing fast never looks like capacity. The limit
 * grows only when it is reached.
 */
export class AdaptiveLimit {
  inFlight = 0;

  readonly #settings: AdaptiveLimitSettings;
  #limit: number;
  /** Latency lately, and without a queue; 0 while unknown. */
  #recentMs = 0;
  #baseMs = 0;
  /** Windows to go with less than the limit: first it drains, then it is measured. */
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

  /** How many may be in flight now; a whole number. */
  get limit(): number {
    return Math.max(this.#settings.floor, Math.floor(this.#measuring > 0 ? this.#lowered : this.#limit));
  }

  onStart(): void {
    this.inFlight++;
    if (this.inFlight > this.#peak) this.#peak = this.inFlight;
  }

  /** `dropped`: it failed as calls to something overloaded do (timeout, 429, 503, refused). */
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

  /** The caller left: it says nothing. */
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
      // While the latency falls the base falls with it, and nothing can be told from the two being alike.
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
