import { policy } from 'holdfast';

/** A person waits for this page: after two seconds they have gone. */
export const catalogue = policy({ name: 'catalogue', patience: '2s' });

export function product(id: string): Promise<Response> {
  return catalogue.run(({ signal }) => fetch(`https://catalogue.test/products/${id}`, { signal }));
}
