import type { Random } from 'holdfast';

/**
 * Random generators for many clients, with the algorithm of `seededRandom`. All state is in one array,
 * because that fits into the processor's cache.
 */
export class StreamBank {
  current = 0;
  readonly #state: Int32Array;

  constructor(streams: number, seed: Random) {
    this.#state = new Int32Array(4 * streams);
    for (let word = 0; word < this.#state.length; word++) {
      this.#state[word] = word % 4 === 3 ? 1 : (seed() * 0x100000000) | 0;
    }
    for (this.current = 0; this.current < streams; this.current++) {
      for (let warmUp = 0; warmUp < 15; warmUp++) this.draw();
    }
  }

  draw(): number {
    const state = this.#state;
    const at = 4 * this.current;
    const a = state[at]!;
    const b = state[at + 1]!;
    const c = state[at + 2]!;
    const counter = state[at + 3]!;
    const sum = (((a + b) | 0) + counter) | 0;
    state[at] = b ^ (b >>> 9);
    state[at + 1] = (c + (c << 3)) | 0;
    state[at + 2] = (((c << 21) | (c >>> 11)) + sum) | 0;
    state[at + 3] = (counter + 1) | 0;
    return (sum >>> 0) / 0x100000000;
  }
}
