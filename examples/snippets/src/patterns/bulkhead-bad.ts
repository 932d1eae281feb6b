import { policy } from 'holdfast';

/** If a review takes 320 ms instead of 20 ms, 400 calls a second hold 128 workers. The program has 50. */
export const unbounded = policy({ patience: '1s' });

export function reviews(product: string): Promise<Response> {
  return unbounded.run(({ signal }) => fetch(`https://reviews.test/${product}`, { signal }));
}
