import { policy } from 'holdfast';

/** One failure opens it, and it opens for everything at once. */
export const nervous = policy({ breaker: { minimum: 1, openFor: '10s' } });

export function find(shard: string, key: string): Promise<Response> {
  return nervous.run(({ signal }) => fetch(`https://${shard}.test/${key}`, { signal }));
}
