import { policy } from 'holdfast';

/** Each call finds out again that the stock service does not answer, and waits a second for it. */
export const stubborn = policy({ attemptTimeout: '1s', breaker: false });

export function inStock(item: string): Promise<Response> {
  return stubborn.run(({ signal }) => fetch(`https://stock.test/${item}`, { signal }));
}
