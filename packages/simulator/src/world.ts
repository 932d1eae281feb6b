import type { Random } from 'holdfast';
import { seededRandom } from 'holdfast/testing';
import { Timeline } from './timeline.ts';
import { Trace } from './trace.ts';

/** The virtual time, the random numbers and the trace of one run. */
export class World {
  readonly timeline: Timeline;
  readonly trace = new Trace();
  readonly isPromised: boolean;
  /** The run ends with an error when the queue of a service instance is longer than this. */
  readonly waitingMax: number;
  readonly #seed: number;

  constructor(seed: number, isPromised: boolean, waitingMax: number) {
    this.timeline = new Timeline(isPromised);
    this.isPromised = isPromised;
    this.waitingMax = waitingMax;
    this.#seed = seed;
  }

  /**
   * A random generator for one purpose. Each purpose has its own, so that an extra draw of a policy does not change the
   * arrivals.
   */
  random(...names: (string | number)[]): Random {
    return seededRandom(this.#seed, ...names);
  }
}
