/**
 * Events by time, and by the order of setting where the time is the same: a heap of four children in typed arrays. Each
 * event has a slot, which stays the same while the event moves, so that any event can be taken out.
 */
export class EventHeap {
  size = 0;
  #times = new Float64Array(1024);
  #orders = new Float64Array(1024);
  #slots = new Int32Array(1024);
  /** By slot: its place in the heap. Of a free slot, the next free one. */
  #places = new Int32Array(1024);
  #free = -1;
  #slotsUsed = 0;
  #order = 0;

  /** The time of the first event; Infinity when there is none. */
  get firstAt(): number {
    return this.size > 0 ? this.#times[0]! : Infinity;
  }

  /** Adds an event and gives its slot. */
  add(at: number): number {
    let slot = this.#free;
    if (slot >= 0) this.#free = this.#places[slot]!;
    else {
      slot = this.#slotsUsed++;
      if (slot >= this.#places.length) this.#grow();
    }
    this.#rise(this.size++, at, ++this.#order, slot);
    return slot;
  }

  /** Takes the first event out and gives its slot, which is free then. */
  takeFirst(): number {
    const slot = this.#slots[0]!;
    this.remove(slot);
    return slot;
  }

  remove(slot: number): void {
    const place = this.#places[slot]!;
    this.#places[slot] = this.#free;
    this.#free = slot;
    const last = --this.size;
    if (place === last) return;
    const at = this.#times[last]!;
    const order = this.#orders[last]!;
    const moved = this.#slots[last]!;
    const parent = (place - 1) >> 2;
    if (place > 0 && isBefore(at, order, this.#times[parent]!, this.#orders[parent]!)) {
      this.#rise(place, at, order, moved);
    } else this.#sink(place, at, order, moved);
  }

  #rise(from: number, at: number, order: number, slot: number): void {
    const times = this.#times;
    const orders = this.#orders;
    const slots = this.#slots;
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 2;
      if (!isBefore(at, order, times[parent]!, orders[parent]!)) break;
      times[place] = times[parent]!;
      orders[place] = orders[parent]!;
      const above = slots[parent]!;
      slots[place] = above;
      this.#places[above] = place;
      place = parent;
    }
    this.#put(place, at, order, slot);
  }

  #sink(from: number, at: number, order: number, slot: number): void {
    const times = this.#times;
    const orders = this.#orders;
    const slots = this.#slots;
    const { size } = this;
    let place = from;
    for (;;) {
      const first = 4 * place + 1;
      if (first >= size) break;
      const end = Math.min(first + 4, size);
      let least = first;
      for (let child = first + 1; child < end; child++) {
        if (isBefore(times[child]!, orders[child]!, times[least]!, orders[least]!)) least = child;
      }
      if (!isBefore(times[least]!, orders[least]!, at, order)) break;
      times[place] = times[least]!;
      orders[place] = orders[least]!;
      const below = slots[least]!;
      slots[place] = below;
      this.#places[below] = place;
      place = least;
    }
    this.#put(place, at, order, slot);
  }

  #put(place: number, at: number, order: number, slot: number): void {
    this.#times[place] = at;
    this.#orders[place] = order;
    this.#slots[place] = slot;
    this.#places[slot] = place;
  }

  #grow(): void {
    const length = 2 * this.#places.length;
    const larger = <A extends Float64Array | Int32Array>(next: A, now: A): A => {
      next.set(now);
      return next;
    };
    this.#times = larger(new Float64Array(length), this.#times);
    this.#orders = larger(new Float64Array(length), this.#orders);
    this.#slots = larger(new Int32Array(length), this.#slots);
    this.#places = larger(new Int32Array(length), this.#places);
  }
}

function isBefore(at: number, order: number, otherAt: number, otherOrder: number): boolean {
  return at < otherAt || (at === otherAt && order < otherOrder);
}
