/** Events are counted in steps of 100 ms. Shorter intervals cannot be measured. */
const stepUs = 100_000;

export class Series {
  total = 0;
  #counts = new Float64Array(1024);
  #length = 0;
  /**
   * The step of the latest event. The next event is mostly in the same step. In this case no division is
   * needed.
   */
  #step = 0;
  #fromUs = -stepUs;

  add(atUs: number): void {
    const sinceUs = atUs - this.#fromUs;
    if (sinceUs < 0 || sinceUs >= stepUs) this.#turnTo((atUs / stepUs) | 0);
    this.#counts[this.#step]!++;
    this.total++;
  }

  #turnTo(step: number): void {
    if (step >= this.#counts.length) this.#counts = longer(this.#counts, 2 * step);
    if (step >= this.#length) this.#length = step + 1;
    this.#step = step;
    this.#fromUs = step * stepUs;
  }

  /** The number of events in [fromMs, untilMs), rounded to whole steps of 100 ms. */
  sum(fromMs: number, untilMs: number): number {
    const end = Math.min(this.#length, Math.round((untilMs * 1000) / stepUs));
    let sum = 0;
    for (let step = Math.round((fromMs * 1000) / stepUs); step < end; step++) sum += this.#counts[step]!;
    return sum;
  }

  /**
   * Splits the time into intervals of `stretchMs`, and returns the highest count of events in one interval.
   */
  most(fromMs: number, untilMs: number, stretchMs: number): number {
    const end = Math.min(untilMs, (this.#length * stepUs) / 1000);
    let most = 0;
    for (let at = fromMs; at < end; at += stretchMs) most = Math.max(most, this.sum(at, at + stretchMs));
    return most;
  }

  seconds(untilMs: number): number[] {
    return Array.from({ length: Math.ceil(untilMs / 1000) }, (_, second) =>
      this.sum(1000 * second, 1000 * (second + 1)),
    );
  }
}

/** Durations, each with the time at which it ended. Quantiles are exact, not estimated. */
export class Samples {
  length = 0;
  #ends = new Float64Array(1024);
  #values = new Float64Array(1024);

  add(endedAtUs: number, valueUs: number): void {
    if (this.length === this.#ends.length) {
      this.#ends = longer(this.#ends, 2 * this.length);
      this.#values = longer(this.#values, 2 * this.length);
    }
    this.#ends[this.length] = endedAtUs;
    this.#values[this.length++] = valueUs;
  }

  get lastEndUs(): number {
    return this.length > 0 ? this.#ends[this.length - 1]! : Number.NaN;
  }

  /** Quantiles in ms of the samples that ended in [fromMs, untilMs); undefined if there are none. */
  quantiles(shares: readonly number[], fromMs = 0, untilMs = Infinity): (number | undefined)[] {
    const chosen = new Float64Array(this.length);
    let length = 0;
    for (let index = 0; index < this.length; index++) {
      const endedAt = this.#ends[index]! / 1000;
      if (endedAt >= fromMs && endedAt < untilMs) chosen[length++] = this.#values[index]!;
    }
    const sorted = chosen.subarray(0, length).sort();
    return shares.map((share) =>
      length === 0 ? undefined : sorted[Math.min(length - 1, Math.ceil(share * length) - 1)]! / 1000,
    );
  }

  bySecond(shares: readonly number[], untilMs: number): (number | null)[][] {
    const seconds = Math.ceil(untilMs / 1000);
    const found: (number | null)[][] = shares.map(() => new Array(seconds).fill(null));
    // Samples are added in the order of their ends, so the samples of one second are a slice.
    for (let index = 0; index < this.length; ) {
      const second = Math.floor(this.#ends[index]! / 1e6);
      const from = index;
      while (index < this.length && this.#ends[index]! < (second + 1) * 1e6) index++;
      if (second >= seconds) break;
      const sorted = this.#values.slice(from, index).sort();
      for (const [of, share] of shares.entries()) {
        found[of]![second] = sorted[Math.ceil(share * sorted.length) - 1]! / 1e6;
      }
    }
    return found;
  }

  /** Of the samples that ended in [fromMs, untilMs): the share with a value above `valueUs`. */
  shareAbove(valueUs: number, fromMs = 0, untilMs = Infinity): number {
    let above = 0;
    let count = 0;
    for (let index = 0; index < this.length; index++) {
      const endedAt = this.#ends[index]! / 1000;
      if (endedAt < fromMs || endedAt >= untilMs) continue;
      count++;
      if (this.#values[index]! > valueUs) above++;
    }
    return above / count;
  }

  mean(fromMs = 0, untilMs = Infinity): number {
    let sum = 0;
    let count = 0;
    for (let index = 0; index < this.length; index++) {
      const endedAt = this.#ends[index]! / 1000;
      if (endedAt < fromMs || endedAt >= untilMs) continue;
      sum += this.#values[index]!;
      count++;
    }
    return count === 0 ? 0 : sum / count / 1000;
  }
}

function longer(array: Float64Array, length: number): Float64Array<ArrayBuffer> {
  const next = new Float64Array(length);
  next.set(array);
  return next;
}
