import { createFetch } from '@holdfast/http';

const orderFetch = createFetch({
  policy: { attempts: 4, backoff: { base: '10ms' }, attemptTimeout: '2s' },
});

export async function order(url: string): Promise<unknown> {
  const response = await orderFetch(url);
  if (!response.ok) throw new Error(`the shop says ${response.status}`);
  return response.json();
}
