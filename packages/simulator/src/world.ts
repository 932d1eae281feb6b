import type { Random } from 'holdfast';
import { seededRandom } from 'holdfast/testing';
import { Timeline } from './timeline.ts';
import { Trace } from './trace.ts';

export class World {
  readonly timeline: Timeline;
  readonly trace = new Trace();
  readonly isPromised: boolean;
  readonly waitingMax: number;
  readonly #seed: number;

  constructor(seed: number, isPromised: boolean, waitingMax: number) {
    this.timeline = new Timeline(isPromised);
    this.isPromised = isPromised;
    this.waitingMax = waitingMax;
    this.#seed = seed;
  }

  /**
   * Returns a random generator for one purpose. Drawing from it does not change the numbers of other
   * purposes.
   */
  random(...names: (string | number)[]): Random {
    return seededRandom(this.#seed, ...names);
  }
}
