import { policy } from 'holdfast';

export const shards = policy({ name: 'shards', breaker: { openFor: ['500ms', '20s'] } });

/** Each shard has a breaker of its own: a dead one does not close the door on the others. */
export function find(shard: string, key: string): Promise<Response> {
  return shards.run(({ signal }) => fetch(`https://${shard}.test/${key}`, { signal }), { target: shard });
}
