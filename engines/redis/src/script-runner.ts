import type { Cluster, Redis } from 'ioredis';

/** A client of ioredis, for one server or for a cluster. */
export type RedisClient = Redis | Cluster;

export type Script = (keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown[]>;

type Command = (keyCount: number, ...rest: (string | number)[]) => Promise<unknown[]>;

export function scriptOf(client: RedisClient, name: string, lua: string): Script {
  const command = `holdfast_${name}`;
  client.defineCommand(command, { lua });
  const run = (client as unknown as Record<string, Command>)[command]!.bind(client);
  return (keys, args) => run(keys.length, ...keys, ...args);
}

/** One item of a batch. In a cluster, all keys of an item are in one slot. */
export interface Item {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/**
 * Runs a script once for the whole batch. In a cluster it runs once per item, because items may be in different slots.
 */
export async function runBatch<T>(
  client: RedisClient,
  script: Script,
  items: readonly Item[],
  common: readonly (string | number)[] = [],
): Promise<T[]> {
  if (items.length === 0) return [];
  if (client.isCluster) {
    const answers = await Promise.all(items.map(({ keys, args }) => script(keys, [...common, ...args])));
    return answers.map(([answer]) => answer as T);
  }
  const keys = items.flatMap((item) => item.keys);
  const args = items.flatMap((item) => item.args);
  return (await script(keys, [...common, ...args])) as T[];
}
