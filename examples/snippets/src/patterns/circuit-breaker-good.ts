import { policy } from 'holdfast';

/** The breaker is on by default. While it is open, calls are refused at once and only a few probes are sent. */
export const stock = policy({ name: 'stock', attemptTimeout: '1s' });

/** Each region has a breaker of its own. */
export function inStock(item: string, region: string): Promise<Response> {
  return stock.run(({ signal }) => fetch(`https://${region}.stock.test/${item}`, { signal }), {
    target: region,
  });
}
