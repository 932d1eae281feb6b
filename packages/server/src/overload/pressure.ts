import { getHeapStatistics } from 'node:v8';

const readEveryMs = 250;
const utilizationMax = 0.95;
const heapMax = 0.9;

export interface Readings {
  /** The fraction of the time since the last call in which the thread was busy, from 0 to 1. */
  utilization(): number;
  /** The used fraction of the heap's size limit, from 0 to 1. */
  heap(): number;
}

/**
 * If fewer than this fraction of the requests were admitted, the thread is busy with refusing requests, and refusing
 * more would not help.
 */
const admittedMin = 0.5;

/**
 * Finds out whether this process itself is overloaded, and not a service that it calls. It measures inside `isHigh`, at
 * most every 250 ms, and sets no timer.
 */
export class Pressure {
  readonly #readings: Readings;
  #high = false;
  #readsAt = -Infinity;
  #seen = 0;
  #admitted = 0;

  constructor(readings: Readings = processReadings()) {
    this.#readings = readings;
  }

  /** Returns whether the process is overloaded. Call it once for each request, because it counts the requests. */
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

/** `performance` has this function in Node, but the DOM types do not know it. */
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
