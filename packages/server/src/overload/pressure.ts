import { getHeapStatistics } from 'node:v8';

const lookMs = 250;
const utilizationMax = 0.95;
const heapMax = 0.9;

export interface Readings {
  /** Part of the time since `before` in which the thread was busy, 0–1. */
  utilization(): number;
  /** Part of the heap's limit that is used, 0–1. */
  heap(): number;
}

/** When less of what comes is let in, it is the refusals that keep the thread busy: more of them would not help. */
const admittedMin = 0.5;

/** Whether the process itself, rather than what it calls, is the bottleneck. It looks when it is asked, and sets no timer. */
export class Pressure {
  readonly #readings: Readings;
  #high = false;
  #looksAt = -Infinity;
  #seen = 0;
  #admitted = 0;

  constructor(readings: Readings = processReadings()) {
    this.#readings = readings;
  }

  /** Asked for each request. */
  isHigh(now: number): boolean {
    this.#seen++;
    if (now < this.#looksAt) return this.#high;
    this.#looksAt = now + lookMs;
    const isBusy = this.#readings.utilization() > utilizationMax || this.#readings.heap() > heapMax;
    this.#high = isBusy && this.#admitted >= admittedMin * this.#seen;
    this.#seen = this.#admitted = 0;
    return this.#high;
  }

  /** One of them was let in. */
  admitted(): void {
    this.#admitted++;
  }
}

interface Utilization {
  readonly utilization: number;
}

/** Node's own, which the types of browsers hide. */
const { eventLoopUtilization } = performance as unknown as {
  eventLoopUtilization(now?: Utilization, before?: Utilization): Utilization;
};

function processReadings(): Readings {
  let before = eventLoopUtilization();
  return {
    utilization() {
      const now = eventLoopUtilization();
      const { utilization } = eventLoopUtilization(now, before);
      before = now;
      return utilization;
    },
    heap() {
      const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
      return used / limit;
    },
  };
}
