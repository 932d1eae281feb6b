import type { Random } from 'holdfast';
import { seededRandom } from 'holdfast/testing';
import { Timeline } from './timeline.ts';
import { Trace } from './trace.ts';

/** Time, chance and the record of one run. */
export class World {
  readonly timeline: Timeline;
  readonly trace = new Trace();
  readonly isPromised: boolean;
  /** A run with a longer queue than this ends. */
  readonly waitingMax: number;
  readonly #seed: number;

  constructor(seed: number, isPromised: boolean, waitingMax: number) {
    this.timeline = new Timeline(isPromised);
    this.isPromised = isPromised;
    this.waitingMax = waitingMax;
    this.#seed = seed;
  }

  /** A random stream for each purpose and entity: an extra draw of one policy does not change the arrivals. */
  random(...names: (string | number)[]): Random {
    return seededRandom(this.#seed, ...names);
  }
}
