import type { Random } from 'holdfast';
import { seededRandom } from 'holdfast/testing';
import { Timeline } from './timeline.ts';
import { Trace } from './trace.ts';

/** Time, chance and the record of one run. */
export class World {
  readonly timeline: Timeline;
  readonly trace = new Trace();
  readonly isPromised: boolean;
  readonly #seed: number;

  constructor(seed: number, isPromised: boolean) {
    this.timeline = new Timeline(isPromised);
    this.isPromised = isPromised;
    this.#seed = seed;
  }

  /** A stream for each purpose and entity: one more draw of one policy moves nobody's arrivals. */
  random(...names: (string | number)[]): Random {
    return seededRandom(this.#seed, ...names);
  }
}
