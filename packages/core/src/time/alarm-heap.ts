import type { Alarm } from './clock.ts';

/** The heap is compacted when it has this many more empty slots than alarms. */
const EMPTY_MAX = 64;

/**
 * A heap of alarms, ordered by their time, then by the order in which they were set.
 *
 * Most alarms are cleared before they ring. So clearing is cheap: it only leaves an empty slot. The times are
 * in separate arrays, because this avoids cache misses.
 */
export class AlarmHeap {
  readonly #alarms: (Alarm | undefined)[] = [];
  readonly #times: number[] = [];
  readonly #orders: number[] = [];
  /** The `order` of the alarm that was set last. */
  order = 0;
  size = 0;

  get first(): Alarm | undefined {
    while (this.#alarms.length > 0 && !this.#alarms[0]) {
      this.#move(this.#alarms.length - 1, 0);
      this.#pop();
      this.#sink(0);
    }
    return this.#alarms[0];
  }

  set(alarm: Alarm, at: number): void {
    this.clear(alarm);
    // An alarm without a valid time (NaN) rings immediately.
    alarm.at = at > 0 ? at : 0;
    alarm.order = ++this.order;
    this.size++;
    let index = this.#alarms.length;
    // The new alarm moves up only past later times. So alarms with the same time keep their order.
    for (
      let parent = (index - 1) >> 1;
      index > 0 && alarm.at < this.#times[parent]!;
      parent = (index - 1) >> 1
    ) {
      this.#move(parent, index);
      index = parent;
    }
    this.#put(index, alarm, alarm.at, alarm.order);
  }

  clear(alarm: Alarm): void {
    const { index } = alarm;
    if (index < 0 || this.#alarms[index] !== alarm) return;
    alarm.index = -1;
    this.#alarms[index] = undefined;
    this.size--;
    if (index === this.#alarms.length - 1) this.#pop();
    else if (this.#alarms.length > 2 * this.size + EMPTY_MAX) this.#compact();
  }

  #sink(from: number): void {
    const { length } = this.#alarms;
    const [alarm, time, order] = [this.#alarms[from], this.#times[from]!, this.#orders[from]!];
    let index = from;
    for (let child = 2 * index + 1; child < length; child = 2 * index + 1) {
      if (child + 1 < length && this.#isBefore(child + 1, this.#times[child]!, this.#orders[child]!)) child++;
      if (!this.#isBefore(child, time, order)) break;
      this.#move(child, index);
      index = child;
    }
    if (index < length) this.#put(index, alarm, time, order);
  }

  #compact(): void {
    let taken = 0;
    for (let index = 0; index < this.#alarms.length; index++)
      if (this.#alarms[index]) this.#move(index, taken++);
    while (this.#alarms.length > taken) this.#pop();
    for (let index = taken >> 1; index >= 0; index--) this.#sink(index);
  }

  #isBefore(index: number, time: number, order: number): boolean {
    const its = this.#times[index]!;
    return its < time || (its === time && this.#orders[index]! < order);
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#alarms[from], this.#times[from]!, this.#orders[from]!);
  }

  #put(index: number, alarm: Alarm | undefined, time: number, order: number): void {
    this.#alarms[index] = alarm;
    this.#times[index] = time;
    this.#orders[index] = order;
    if (alarm) alarm.index = index;
  }

  #pop(): void {
    this.#alarms.pop();
    this.#times.pop();
    this.#orders.pop();
  }
}
