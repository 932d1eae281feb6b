import type { Cluster, Redis } from 'ioredis';

export type RedisClient = Redis | Cluster;

/** Runs one script; Redis keeps it after the first time. */
export type Script = (keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown[]>;

type Command = (keyCount: number, ...rest: (string | number)[]) => Promise<unknown[]>;

export function scriptOf(client: RedisClient, name: string, lua: string): Script {
  const command = `holdfast_${name}`;
  client.defineCommand(command, { lua });
  const run = (client as unknown as Record<string, Command>)[command]!.bind(client);
  return (keys, args) => run(keys.length, ...keys, ...args);
}

/** One of a batch: its keys share a slot, and those of another need not. */
export interface Item {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/** The whole batch in one call, or in a cluster, where its keys may be anywhere, each item in one of its own. */
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
