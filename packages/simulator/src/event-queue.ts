const BUCKET_US = 256;
/**
 * The number of buckets of each timing wheel. The near wheel covers about a second, the far wheel about an
 * hour.
 */
const BUCKETS = 4096;
const TURN_US = BUCKET_US * BUCKETS;
const FAR_TURN_US = TURN_US * BUCKETS;
const NOWHERE = -1;
const BEYOND = 2 * BUCKETS;

/**
 * A priority queue of events, sorted by time and then by insertion. The next events are in a small heap. All
 * others are in two timing wheels, so adding and removing have a constant cost.
 */
export class EventQueue {
  size = 0;
  /** The heap of the next events. Each element is a slot number; each node has four children. */
  #near = new Int32Array(256);
  #nearSize = 0;
  #nearUntil = 0;
  #turnFrom = 0;
  #farTurnFrom = 0;
  readonly #firsts = new Int32Array(2 * BUCKETS + 1).fill(NOWHERE);
  /** One bit for each bucket: 1 if the bucket is not empty. */
  readonly #occupied = new Int32Array((2 * BUCKETS) / 32);
  #order = 0;
  #free = NOWHERE;
  #slotsUsed = 0;

  #times = new Float64Array(1024);
  #orders = new Float64Array(1024);
  #nexts = new Int32Array(1024);
  #previous = new Int32Array(1024);
  /** The index of the event in the heap. For an event in a bucket: −2 − bucket. */
  #places = new Int32Array(1024);

  /** The time of the first event in µs; Infinity if the queue is empty. */
  get firstAt(): number {
    if (this.#nearSize === 0 && !this.#approach()) return Infinity;
    return this.#times[this.#near[0]!]!;
  }

  /** Adds an event and returns its slot. `at` (in µs) must not be before the last event that was taken. */
  add(at: number): number {
    let slot = this.#free;
    if (slot >= 0) this.#free = this.#nexts[slot]!;
    else {
      slot = this.#slotsUsed++;
      if (slot >= this.#places.length) this.#grow();
    }
    this.#times[slot] = at;
    this.#orders[slot] = ++this.#order;
    this.size++;
    this.#place(slot, at);
    return slot;
  }

  /**
   * Removes the earliest event and returns its slot. After that, the slot may be reused. The queue must not
   * be empty.
   */
  takeFirst(): number {
    if (this.#nearSize === 0) this.#approach();
    const slot = this.#near[0]!;
    const last = this.#near[--this.#nearSize]!;
    if (this.#nearSize > 0) this.#sink(0, last);
    this.#release(slot);
    return slot;
  }

  remove(slot: number): void {
    const place = this.#places[slot]!;
    if (place < 0) this.#unlink(slot, -2 - place);
    else {
      const last = this.#near[--this.#nearSize]!;
      if (last !== slot) {
        const parent = (place - 1) >> 2;
        if (place > 0 && this.#isBefore(last, this.#near[parent]!)) this.#rise(place, last);
        else this.#sink(place, last);
      }
    }
    this.#release(slot);
  }

  #release(slot: number): void {
    this.#nexts[slot] = this.#free;
    this.#free = slot;
    this.size--;
  }

  #place(slot: number, at: number): void {
    if (at < this.#nearUntil) {
      if (this.#nearSize === this.#near.length)
        this.#near = larger(this.#near, new Int32Array(2 * this.#nearSize));
      this.#rise(this.#nearSize++, slot);
    } else if (at < this.#turnFrom + TURN_US) this.#link(slot, ((at - this.#turnFrom) / BUCKET_US) | 0);
    else if (at < this.#farTurnFrom + FAR_TURN_US) {
      this.#link(slot, BUCKETS + (((at - this.#farTurnFrom) / TURN_US) | 0));
    } else this.#link(slot, BEYOND);
  }

  #link(slot: number, bucket: number): void {
    const first = this.#firsts[bucket]!;
    this.#nexts[slot] = first;
    this.#previous[slot] = NOWHERE;
    this.#places[slot] = -2 - bucket;
    this.#firsts[bucket] = slot;
    if (first >= 0) this.#previous[first] = slot;
    else if (bucket < BEYOND) this.#occupied[bucket >> 5]! |= 1 << (bucket & 31);
  }

  #unlink(slot: number, bucket: number): void {
    const next = this.#nexts[slot]!;
    const previous = this.#previous[slot]!;
    if (next >= 0) this.#previous[next] = previous;
    if (previous >= 0) this.#nexts[previous] = next;
    else {
      this.#firsts[bucket] = next;
      if (next < 0 && bucket < BEYOND) this.#occupied[bucket >> 5]! &= ~(1 << (bucket & 31));
    }
  }

  /** Moves the events of the next non-empty bucket into the heap. Returns false if the queue is empty. */
  #approach(): boolean {
    if (this.size === 0) return false;
    for (;;) {
      const bucket = this.#nextOccupied(((this.#nearUntil - this.#turnFrom) / BUCKET_US) | 0, BUCKETS);
      if (bucket >= 0) {
        this.#nearUntil = this.#turnFrom + (bucket + 1) * BUCKET_US;
        this.#empty(bucket);
        return true;
      }
      const turn = ((this.#turnFrom - this.#farTurnFrom) / TURN_US) | 0;
      const next = this.#nextOccupied(BUCKETS + turn + 1, 2 * BUCKETS);
      if (next < 0) {
        const earliest = this.#earliestBeyond();
        if (earliest === Infinity) return this.#endOfTime();
        this.#farTurnFrom = Math.floor(earliest / FAR_TURN_US) * FAR_TURN_US;
      }
      this.#turnFrom = this.#farTurnFrom + (next < 0 ? 0 : next - BUCKETS) * TURN_US;
      this.#nearUntil = this.#turnFrom;
      this.#empty(next < 0 ? BEYOND : next);
    }
  }

  #endOfTime(): true {
    this.#nearUntil = Number.MAX_VALUE;
    for (let slot = this.#firsts[BEYOND]!; slot >= 0; ) {
      const next = this.#nexts[slot]!;
      this.#rise(this.#nearSize++, slot);
      slot = next;
    }
    this.#firsts[BEYOND] = NOWHERE;
    return true;
  }

  #empty(bucket: number): void {
    let slot = this.#firsts[bucket]!;
    this.#firsts[bucket] = NOWHERE;
    if (bucket < BEYOND) this.#occupied[bucket >> 5]! &= ~(1 << (bucket & 31));
    while (slot >= 0) {
      const next = this.#nexts[slot]!;
      this.#place(slot, this.#times[slot]!);
      slot = next;
    }
  }

  #earliestBeyond(): number {
    let earliest = Infinity;
    for (let slot = this.#firsts[BEYOND]!; slot >= 0; slot = this.#nexts[slot]!) {
      if (this.#times[slot]! < earliest) earliest = this.#times[slot]!;
    }
    return earliest;
  }

  #nextOccupied(from: number, until: number): number {
    if (from >= until) return NOWHERE;
    let word = from >> 5;
    let bits = this.#occupied[word]! & (-1 << (from & 31));
    while (bits === 0) {
      if (++word >= until >> 5) return NOWHERE;
      bits = this.#occupied[word]!;
    }
    return 32 * word + 31 - Math.clz32(bits & -bits);
  }

  #isBefore(slot: number, other: number): boolean {
    const at = this.#times[slot]!;
    const otherAt = this.#times[other]!;
    return at < otherAt || (at === otherAt && this.#orders[slot]! < this.#orders[other]!);
  }

  #rise(from: number, slot: number): void {
    const near = this.#near;
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 2;
      const above = near[parent]!;
      if (!this.#isBefore(slot, above)) break;
      near[place] = above;
      this.#places[above] = place;
      place = parent;
    }
    near[place] = slot;
    this.#places[slot] = place;
  }

  #sink(from: number, slot: number): void {
    const near = this.#near;
    const size = this.#nearSize;
    let place = from;
    for (;;) {
      const first = 4 * place + 1;
      if (first >= size) break;
      const end = first + 4 < size ? first + 4 : size;
      let least = first;
      for (let child = first + 1; child < end; child++) {
        if (this.#isBefore(near[child]!, near[least]!)) least = child;
      }
      const below = near[least]!;
      if (!this.#isBefore(below, slot)) break;
      near[place] = below;
      this.#places[below] = place;
      place = least;
    }
    near[place] = slot;
    this.#places[slot] = place;
  }

  #grow(): void {
    const length = 2 * this.#places.length;
    this.#times = larger(this.#times, new Float64Array(length));
    this.#orders = larger(this.#orders, new Float64Array(length));
    this.#nexts = larger(this.#nexts, new Int32Array(length));
    this.#previous = larger(this.#previous, new Int32Array(length));
    this.#places = larger(this.#places, new Int32Array(length));
  }
}

function larger<A extends Float64Array | Int32Array>(now: A, next: A): A {
  next.set(now);
  return next;
}
