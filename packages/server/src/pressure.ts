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

/** Whether the process itself, rather than what it calls, is the bottleneck. It looks when it is asked, and sets no timer. */
export class Pressure {
  readonly #readings: Readings;
  #high = false;
  #looksAt = -Infinity;

  constructor(readings: Readings = processReadings()) {
    this.#readings = readings;
  }

  isHigh(now: number): boolean {
    if (now < this.#looksAt) return this.#high;
    this.#looksAt = now + lookMs;
    this.#high = this.#readings.utilization() > utilizationMax || this.#readings.heap() > heapMax;
    return this.#high;
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
