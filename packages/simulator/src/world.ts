import type { Random } from 'holdfast';
import { seededRandom } from 'holdfast/testing';
import { Timeline } from './timeline.ts';
import { Trace } from './trace.ts';

export class World {
  readonly timeline: Timeline;
  readonly trace = new Trace();
  readonly isPromised: boolean;
  /** The run fails when the queue of an instance is longer than this. */
  readonly waitingMax: number;
  readonly #seed: number;

  constructor(seed: number, isPromised: boolean, waitingMax: number) {
    this.timeline = new Timeline(isPromised);
    this.isPromised = isPromised;
    this.waitingMax = waitingMax;
    this.#seed = seed;
  }

  /** A random generator for one purpose. An extra draw for one purpose does not change the others. */
  random(...names: (string | number)[]): Random {
    return seededRandom(this.#seed, ...names);
  }
}
