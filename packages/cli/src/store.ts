import { existsSync } from 'node:fs';
import type { Audit, Broker, Controls, Engine, Presence, Triage } from '@holdfast/contracts';
import { type Flag, type Given, StoreUnavailable, UsageError } from './command.ts';
import { textOf } from './given-values.ts';
import type { Terminal } from './terminal.ts';

export const storeFlag: Record<'store', Flag> = {
  store: {
    value: 'file or URL',
    says: 'a SQLite file, or postgres://…[?schema=name]; HOLDFAST_STORE unless given',
  },
};

export interface OpenStore extends Engine {
  readonly broker: Broker;
  readonly triage: Triage;
  readonly controls: Controls;
  readonly audit: Audit;
  readonly presence: Presence;
}

export async function withStore<T>(
  given: Given,
  terminal: Terminal,
  use: (engine: OpenStore) => Promise<T>,
): Promise<T> {
  const engine = await openStore(textOf(given, 'store') ?? terminal.env.HOLDFAST_STORE);
  try {
    return await use(engine);
  } finally {
    await engine.close();
  }
}

/** Opens an existing store. It never creates one, because an empty store would hide a wrong path or URL. */
export async function openStore(where: string | undefined): Promise<OpenStore> {
  if (where === undefined || where === '') {
    throw new UsageError('which store? Say --store <file or postgres URL>, or set HOLDFAST_STORE.');
  }
  if (!where.includes('://') && !existsSync(where)) throw new StoreUnavailable(`there is no file ${where}.`);
  try {
    if (/^postgres(ql)?:\/\//.test(where)) {
      const { openPostgres } = await import('@holdfast/postgres');
      const { url, schema } = withoutSchema(where);
      const options = { url, mustExist: true, connectionsMax: 2, ...(schema !== null && { schema }) };
      return (await openPostgres(options)) as unknown as OpenStore;
    }
    const { openSqlite } = await import('@holdfast/sqlite');
    return (await openSqlite({ file: where, mustExist: true })) as unknown as OpenStore;
  } catch (error) {
    throw new StoreUnavailable(`${withoutSecrets(where)} cannot be opened: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/**
 * PostgreSQL does not know the parameter `schema`, as in `postgres://host/db?schema=shop`. So remove it from
 * the URL.
 */
function withoutSchema(where: string): { url: string; schema: string | null } {
  const [before = '', query = ''] = where.split('?', 2);
  const parameters = new URLSearchParams(query);
  const schema = parameters.get('schema');
  if (schema === null) return { url: where, schema };
  parameters.delete('schema');
  return { url: parameters.size > 0 ? `${before}?${parameters}` : before, schema };
}

export function withoutSecrets(where: string): string {
  // A password may contain an @. It may also be a query parameter.
  return where.replace(/\/\/[^/?#]*@/, '//…@').replace(/([?&]password=)[^&#]*/gi, '$1…');
}
