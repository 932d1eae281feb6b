import { getHeapStatistics } from 'node:v8';

const readEveryMs = 250;
const utilizationMax = 0.95;
const heapMax = 0.9;

/** How busy the process is: the event loop and the heap, each from 0 to 1. */
export interface Readings {
  /** The busy fraction of the thread since the last call, from 0 to 1. */
  utilization(): number;
  /** The used fraction of the heap limit, from 0 to 1. */
  heap(): number;
}

/**
 * If a smaller fraction of requests is admitted, the thread is busy with refusing requests. Refusing more would not
 * help.
 */
const admittedMin = 0.5;

/** Detects that this process is overloaded. It measures at most every 250 ms, inside `isHigh`, without a timer. */
export class Pressure {
  readonly #readings: Readings;
  #high = false;
  #readsAt = -Infinity;
  #seen = 0;
  #admitted = 0;

  constructor(readings: Readings = processReadings()) {
    this.#readings = readings;
  }

  /** Returns whether the process is overloaded. Call it once for each request, because it counts requests. */
  isHigh(now: number): boolean {
    this.#seen++;
    if (now < this.#readsAt) return this.#high;
    this.#readsAt = now + readEveryMs;
    const isBusy = this.#readings.utilization() > utilizationMax || this.#readings.heap() > heapMax;
    this.#high = isBusy && this.#admitted >= admittedMin * this.#seen;
    this.#seen = this.#admitted = 0;
    return this.#high;
  }

  /** Call it for each admitted request. */
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
