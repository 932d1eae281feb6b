import axios from 'axios';
import axiosRetry from 'axios-retry';

const client = axios.create({ timeout: 2000 });
axiosRetry(client, {
  retries: 3,
  retryDelay: (count, error) => axiosRetry.exponentialDelay(count, error, 10),
});

export async function order(url: string): Promise<unknown> {
  const { data } = await client.get(url);
  return data;
}
