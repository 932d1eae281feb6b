import { createFetch } from '@holdfast/http';

const shopFetch = createFetch({
  policy: { attempts: 5, backoff: { base: '10ms', factor: 2 }, patience: '5s' },
});

export async function price(url: string): Promise<unknown> {
  const response = await shopFetch(url);
  if (response.status === 404) throw new Error('no such product');
  // The last response comes back as it is, also a bad one.
  if (!response.ok) throw Object.assign(new Error(response.statusText), { status: response.status });
  return response.json();
}
