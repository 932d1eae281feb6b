import type { Engine } from '@holdfast/contracts';
import { openPostgres } from '@holdfast/postgres';
import { openSqlite } from '@holdfast/sqlite';

export type AnyEngine = Required<Engine<unknown>>;

/** Opens the store of a test in another process: `where` is a file or a URL. */
export async function openStore(kind: string, where: string, schema: string): Promise<AnyEngine> {
  const opened =
    kind === 'postgres'
      ? await openPostgres({ url: where, schema, connectionsMax: 2, durability: 'process' })
      : await openSqlite({ file: where });
  return opened as unknown as AnyEngine;
}
