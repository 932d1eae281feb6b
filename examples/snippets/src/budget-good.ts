import { policy } from 'holdfast';

/** One retry for ten successes. When nothing succeeds, what has been saved is soon spent, and retries end. */
export const stock = policy({ budget: { ratio: 0.1 } });

export function inStock(item: string): Promise<Response> {
  return stock.run(({ signal }) => fetch(`https://stock.test/${item}`, { signal }));
}
