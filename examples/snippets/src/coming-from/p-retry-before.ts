import pRetry, { AbortError } from 'p-retry';

export function price(url: string): Promise<unknown> {
  return pRetry(
    async () => {
      const response = await fetch(url);
      if (response.status === 404) throw new AbortError('no such product');
      if (!response.ok) throw new Error(response.statusText);
      return response.json();
    },
    { retries: 4, minTimeout: 10, factor: 2, randomize: true, maxRetryTime: 5000 },
  );
}
