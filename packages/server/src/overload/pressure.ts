import { getHeapStatistics } from 'node:v8';

const readEveryMs = 250;
const utilizationMax = 0.95;
const heapMax = 0.9;

export interface Readings {
  /** The ratio of the time since the last call in which the thread was busy, 0–1. */
  utilization(): number;
  /** The ratio of the heap's limit that is used, 0–1. */
  heap(): number;
}

/** When a smaller ratio of requests is admitted, refusals keep the thread busy, and more refusals would not help. */
const admittedMin = 0.5;

/** Whether this process, and not what it calls, is the bottleneck. It takes readings when it is asked, and sets no timer. */
export class Pressure {
  readonly #readings: Readings;
  #high = false;
  #readsAt = -Infinity;
  #seen = 0;
  #admitted = 0;

  constructor(readings: Readings = processReadings()) {
    this.#readings = readings;
  }

  /** Call it once for each request. */
  isHigh(now: number): boolean {
    this.#seen++;
    if (now < this.#readsAt) return this.#high;
    this.#readsAt = now + readEveryMs;
    const isBusy = this.#readings.utilization() > utilizationMax || this.#readings.heap() > heapMax;
    this.#high = isBusy && this.#admitted >= admittedMin * this.#seen;
    this.#seen = this.#admitted = 0;
    return this.#high;
  }

  /** Call it for each request that was admitted. */
  admitted(): void {
    this.#admitted++;
  }
}

interface Utilization {
  readonly utilization: number;
}

/** A function of Node that the DOM types do not have. */
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
