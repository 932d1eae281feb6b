import { policy } from 'holdfast';

/** At most four attempts in 5 s. Waits grow and are random; the budget and the breaker are on by default. */
export const products = policy({ name: 'products', patience: '5s' });

export function product(id: string): Promise<Response> {
  return products.run(({ signal }) => fetch(`https://shop.test/products/${id}`, { signal }));
}
