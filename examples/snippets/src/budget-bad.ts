import { policy } from 'holdfast';

/** In an outage each call becomes six, from every caller at once, and the outage goes on. */
export const storm = policy({ attempts: 6, budget: false, breaker: false });

export function inStock(item: string): Promise<Response> {
  return storm.run(({ signal }) => fetch(`https://stock.test/${item}`, { signal }));
}
