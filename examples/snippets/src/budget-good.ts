import { policy } from 'holdfast';

/** Ten successes pay for one retry that fails. When nothing succeeds, the bucket is soon empty, and retries end. */
export const stock = policy({ budget: { ratio: 0.1 } });

export function inStock(item: string): Promise<Response> {
  return stock.run(({ signal }) => fetch(`https://stock.test/${item}`, { signal }));
}
