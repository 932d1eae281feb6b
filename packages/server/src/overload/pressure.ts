import { getHeapStatistics } from 'node:v8';

const readEveryMs = 250;
const utilizationMax = 0.95;
const heapMax = 0.9;

/** Measures how busy the process is: its thread and its heap, each from 0 to 1. */
export interface Readings {
  /** Returns which fraction of the time since the last call the thread was busy, from 0 to 1. */
  utilization(): number;
  /** Returns which fraction of the heap limit is used, from 0 to 1. */
  heap(): number;
}

/**
 * If less than this share of the requests is admitted, the pressure does not count as high. More refusals
 * would not help, because the refusals themselves keep the thread busy.
 */
const admittedMin = 0.5;

/** Detects that this process is overloaded. It has no timer: `isHigh` measures, at most every 250 ms. */
export class Pressure {
  readonly #readings: Readings;
  #high = false;
  #readsAt = -Infinity;
  #seen = 0;
  #admitted = 0;

  constructor(readings: Readings = processReadings()) {
    this.#readings = readings;
  }

  /** Call it once per request, because it counts requests. */
  isHigh(now: number): boolean {
    this.#seen++;
    if (now < this.#readsAt) return this.#high;
    this.#readsAt = now + readEveryMs;
    const isBusy = this.#readings.utilization() > utilizationMax || this.#readings.heap() > heapMax;
    this.#high = isBusy && this.#admitted >= admittedMin * this.#seen;
    this.#seen = this.#admitted = 0;
    return this.#high;
  }

  admitted(): void {
    this.#admitted++;
  }
}

interface Utilization {
  readonly utilization: number;
}

/** Node has this function, but the DOM types of `performance` do not declare it. */
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
