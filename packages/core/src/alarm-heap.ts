import type { Alarm } from './clock.ts';

/** Alarms by time, and by the order of setting where the time is the same. */
export class AlarmHeap {
  readonly #heap: Alarm[] = [];
  /** Of the alarm set last. */
  order = 0;

  get size(): number {
    return this.#heap.length;
  }

  get first(): Alarm | undefined {
    return this.#heap[0];
  }

  set(alarm: Alarm, at: number): void {
    this.clear(alarm);
    // Compared so that NaN is overdue: rung at once rather than never.
    alarm.at = at > 0 ? at : 0;
    alarm.order = ++this.order;
    this.#place(alarm, this.#heap.length);
  }

  clear(alarm: Alarm): void {
    const { index } = alarm;
    if (index < 0 || this.#heap[index] !== alarm) return;
    alarm.index = -1;
    const last = this.#heap.pop() as Alarm;
    if (last !== alarm) this.#place(last, index);
  }

  /** Puts an alarm where `index` is free, moving others up or down until the order is right. */
  #place(alarm: Alarm, free: number): void {
    const heap = this.#heap;
    let index = free;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(alarm, heap[parent]!)) break;
      put(heap, heap[parent]!, index);
      index = parent;
    }
    for (let child = 2 * index + 1; child < heap.length; child = 2 * index + 1) {
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, alarm)) break;
      put(heap, heap[child]!, index);
      index = child;
    }
    put(heap, alarm, index);
  }
}

function put(heap: Alarm[], alarm: Alarm, index: number): void {
  heap[index] = alarm;
  alarm.index = index;
}

function isBefore(a: Alarm, b: Alarm): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
