import { policy } from 'holdfast';

/** A fast service: the first wait is at most 50 ms, and no wait is longer than a second. */
export const prices = policy({ patience: '3s', backoff: { base: '50ms', cap: '1s' } });

export function price(item: string): Promise<Response> {
  return prices.run(({ signal }) => fetch(`https://prices.test/${item}`, { signal }));
}
