import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Engine } from '@holdfast/contracts';
import { openPostgres, type PostgresTransaction } from '@holdfast/postgres';
import { openSqlite } from '@holdfast/sqlite';
import { onTestFinished } from 'vitest';

type AnyEngine = Required<Engine<unknown>>;

export interface Effect {
  readonly id: string;
  readonly key: string;
}

/** A store that several processes open, with a table of effects in it. */
export interface SharedStore {
  open(): Promise<AnyEngine>;
  /** Writes an effect inside a handler's `commit`. */
  write(tx: unknown, effect: Effect): void | Promise<void>;
  /** In the order in which they were written. */
  effects(): Promise<readonly Effect[]>;
}

export async function sqliteStore(): Promise<SharedStore> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-events-'));
  const open = opener(
    async () => (await openSqlite({ file: path.join(folder, 'events.db') })) as unknown as AnyEngine,
  );
  onTestFinished(() => rm(folder, { recursive: true }));
  onTestFinished(open.closeAll);
  const first = await open();
  const query = <T>(work: (database: DatabaseSync) => T) =>
    inTransaction(first, (tx) => work(tx as DatabaseSync));
  await query((database) =>
    database.exec('CREATE TABLE effect (position INTEGER PRIMARY KEY, id TEXT, key TEXT)'),
  );
  return {
    open,
    write(tx, { id, key }) {
      (tx as DatabaseSync).prepare('INSERT INTO effect (id, key) VALUES (?, ?)').run(id, key);
    },
    effects: () =>
      query(
        (database) =>
          database.prepare('SELECT id, key FROM effect ORDER BY position').all() as unknown as Effect[],
      ),
  };
}

let schemas = 0;

export async function postgresStore(url: string): Promise<SharedStore> {
  const schema = `events_${process.pid}_${++schemas}`;
  const open = opener(
    async () =>
      (await openPostgres({ url, schema, connectionsMax: 4, durability: 'process' })) as unknown as AnyEngine,
  );
  const first = await open();
  const query = (sql: string) => inTransaction(first, (tx) => (tx as PostgresTransaction).query(sql));
  await query(
    `CREATE TABLE ${schema}.effect (position bigint GENERATED ALWAYS AS IDENTITY, id text, key text)`,
  );
  onTestFinished(async () => {
    await open.closeAll();
    const last = await openPostgres({ url, schema: `${schema}_gone` });
    const drop = `DROP SCHEMA ${schema} CASCADE; DROP SCHEMA ${schema}_gone CASCADE`;
    await inTransaction(last as unknown as AnyEngine, (tx) => (tx as PostgresTransaction).query(drop)).catch(
      () => {
        // The record of the migration is removed with the schema.
      },
    );
    await last.close();
  });
  return {
    open,
    async write(tx, { id, key }) {
      await (tx as PostgresTransaction).query(`INSERT INTO ${schema}.effect (id, key) VALUES ($1, $2)`, [
        id,
        key,
      ]);
    },
    async effects() {
      return (await query(`SELECT id, key FROM ${schema}.effect ORDER BY position`)).rows as Effect[];
    },
  };
}

function opener(make: () => Promise<AnyEngine>): (() => Promise<AnyEngine>) & { closeAll(): Promise<void> } {
  const opened: AnyEngine[] = [];
  return Object.assign(
    async () => {
      const engine = await make();
      opened.push(engine);
      return engine;
    },
    {
      async closeAll() {
        for (const engine of opened.splice(0)) await engine.close();
      },
    },
  );
}

let keys = 0;

/** Runs `work` in a transaction of the engine, as the commit of a completion. */
async function inTransaction<T>({ ledger }: AnyEngine, work: (tx: unknown) => T): Promise<Awaited<T>> {
  const claim = { scope: 'test', key: `${process.pid} ${++keys}`, fingerprint: '', leaseMs: 60_000 };
  const [begun] = await ledger.begin([claim]);
  if (begun?.kind !== 'acquired') throw new Error(`the key is ${begun?.kind}`);
  let given: T | undefined;
  const commit = (tx: unknown) => {
    given = work(tx);
    return given instanceof Promise ? given.then(() => undefined) : undefined;
  };
  const [completed] = await ledger.complete([{ hold: begun.hold, record: undefined, keepMs: 0, commit }]);
  if (completed?.because) throw completed.error ?? new Error(completed.because);
  return (await given) as Awaited<T>;
}
