/**
 * Durations are counted in buckets from 16 µs to 36 min, with 16 buckets for each doubling. A duration
 * differs by at most about 3 % from the middle of its bucket.
 */
const BUCKETS = 432;
const LEAST_US = 16;
const MOST_US = 0x7fffffff;

/**
 * Samples are kept in two generations, and quantiles cover both. A new generation starts after
 * GENERATION_SAMPLES samples or after GENERATION_MS. At that time, the older of the two generations is
 * dropped.
 */
const GENERATION_SAMPLES = 5_000;
const GENERATION_MS = 300_000;

const RECENT_WEIGHT = 0.1;

/** A computed quantile is reused until `samples / KEPT_RATIO` new samples are recorded, at most KEPT_MAX. */
const KEPT_RATIO = 16;
const KEPT_MAX = 256;

interface Kept {
  readonly q: number;
  ms: number;
  until: number;
}

/**
 * The durations of recent calls. Quantiles are accurate to 5 %. Durations above 36 min are recorded as 36
 * min.
 */
export class Latency {
  /** A moving average over about the last ten samples; 0 before the first. */
  recent = 0;

  #counts = new Uint32Array(BUCKETS);
  #olderCounts = new Uint32Array(BUCKETS);
  #samples = 0;
  #olderSamples = 0;
  #endsAt = -Infinity;
  #recorded = 0;
  #longest = 0;
  #olderLongest = 0;
  readonly #kept: Kept[] = [];

  /** The number of samples that the quantiles cover. */
  get samples(): number {
    return this.#samples + this.#olderSamples;
  }

  /** The longest sample that the quantiles cover, in ms; 0 without samples. */
  get longest(): number {
    return Math.max(this.#longest, this.#olderLongest);
  }

  record(now: number, ms: number): void {
    if (now >= this.#endsAt || this.#samples >= GENERATION_SAMPLES) this.#turn(now);
    if (ms > this.#longest) this.#longest = ms;
    const us = Math.max(LEAST_US, Math.min(ms * 1000, MOST_US) | 0);
    const doublings = 27 - Math.clz32(us);
    this.#counts[(doublings << 4) + (us >>> doublings) - 16]!++;
    this.#samples++;
    this.recent = this.#recorded++ === 0 ? ms : this.recent + (ms - this.recent) * RECENT_WEIGHT;
  }

  /**
   * Returns the ms within which the share `q` of the calls ended; 0 without samples. The value may be
   * slightly out of date.
   */
  quantile(q: number): number {
    const kept = this.#keptFor(q);
    if (this.#recorded >= kept.until) {
      kept.ms = this.#lookUp(q);
      kept.until = this.#recorded + Math.min(KEPT_MAX, Math.ceil(this.samples / KEPT_RATIO));
    }
    return kept.ms;
  }

  #keptFor(q: number): Kept {
    for (const kept of this.#kept) if (kept.q === q) return kept;
    const kept = { q, ms: 0, until: 0 };
    // At most 8 quantiles are kept, so that callers with many different `q` cannot use much memory.
    if (this.#kept.push(kept) > 8) this.#kept.shift();
    return kept;
  }

  #lookUp(q: number): number {
    let above = this.samples - Math.ceil(q * this.samples);
    for (let bucket = BUCKETS - 1; bucket >= 0; bucket--) {
      above -= this.#counts[bucket]! + this.#olderCounts[bucket]!;
      if (above < 0) return (((bucket & 15) + 16.5) * 2 ** (bucket >> 4)) / 1000;
    }
    return 0;
  }

  #turn(now: number): void {
    const counts = this.#olderCounts.fill(0);
    this.#olderCounts = this.#counts;
    this.#olderSamples = this.#samples;
    this.#olderLongest = this.#longest;
    // The previous generation ended more than GENERATION_MS ago, so its samples are too old as well.
    if (now >= this.#endsAt + GENERATION_MS) {
      this.#olderCounts.fill(0);
      this.#olderSamples = 0;
      this.#olderLongest = 0;
    }
    this.#counts = counts;
    this.#samples = 0;
    this.#longest = 0;
    this.#endsAt = now + GENERATION_MS;
  }
}
