import type { Random } from '../time/clock.ts';

/**
 * Returns a repeatable source of random numbers: the same names always give the same numbers. Use one source
 * for each purpose, such as `seededRandom('jitter', 7)`, so that the purposes do not affect each other.
 */
export function seededRandom(...names: (string | number)[]): Random {
  const next = hash(names.join('\0'));
  let a = next();
  let b = next();
  let c = next();
  let counter = 1;
  // This is the generator sfc32. It passes the PractRand tests and needs only 32-bit integers.
  function draw(): number {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  }
  for (let warmUp = 0; warmUp < 15; warmUp++) draw();
  return draw;
}

function hash(text: string): () => number {
  let state = 1779033703 ^ text.length;
  for (let index = 0; index < text.length; index++) {
    state = Math.imul(state ^ text.charCodeAt(index), 3432918353);
    state = (state << 13) | (state >>> 19);
  }
  return () => {
    state = Math.imul(state ^ (state >>> 16), 2246822507);
    state = Math.imul(state ^ (state >>> 13), 3266489909);
    state ^= state >>> 16;
    return state;
  };
}
