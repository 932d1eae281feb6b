import { policy } from 'holdfast';

/** Usually 8 calls are in flight (400 a second × 20 ms). 20 are enough, and 30 of the 50 workers stay free. */
export const bounded = policy({ patience: '1s', bulkhead: { concurrent: 20, queue: 5 } });

export function reviews(product: string): Promise<Response> {
  return bounded.run(({ signal }) => fetch(`https://reviews.test/${product}`, { signal }));
}
