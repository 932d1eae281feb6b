import type { Broker, Engine, Triage } from '@holdfast/contracts';
import { type Flag, type Given, StoreUnavailable, UsageError } from './command.ts';
import { textOf } from './given-values.ts';
import type { Terminal } from './terminal.ts';

export const storeFlag: Record<'store', Flag> = {
  store: { value: 'file or URL', says: 'a SQLite file, or postgres://…; HOLDFAST_STORE unless given' },
};

/** An open store with the parts that commands use. */
export type OpenStore = Engine & { readonly broker: Broker; readonly triage: Triage };

/** Opens the store, calls `use`, and closes the store in any case. */
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

/** Opens a store that exists. It does not create one: an empty store would hide a wrong path or URL. */
async function openStore(where: string | undefined): Promise<OpenStore> {
  if (where === undefined || where === '') {
    throw new UsageError('which store? Say --store <file or postgres URL>, or set HOLDFAST_STORE.');
  }
  try {
    if (/^postgres(ql)?:\/\//.test(where)) {
      const { openPostgres } = await import('@holdfast/postgres');
      return (await openPostgres({ url: where, mustExist: true, connectionsMax: 2 })) as unknown as OpenStore;
    }
    const { openSqlite } = await import('@holdfast/sqlite');
    return (await openSqlite({ file: where, mustExist: true })) as unknown as OpenStore;
  } catch (error) {
    throw new StoreUnavailable(`${withoutSecrets(where)} cannot be opened: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function withoutSecrets(where: string): string {
  // A password may contain an @, and a URL may have the password as a query parameter.
  return where.replace(/\/\/[^/?#]*@/, '//…@').replace(/([?&]password=)[^&#]*/gi, '$1…');
}
