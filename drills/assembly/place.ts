import { openSync, writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { Engine, Journal } from '@holdfast/contracts';
import { openPostgres, type PostgresTransaction } from '@holdfast/postgres';
import { openSqlite } from '@holdfast/sqlite';
import pg from 'pg';

/** What the processes of the drill share; it goes to them as JSON. */
export interface Place {
  readonly engine: 'sqlite' | 'postgres';
  /** A file, or the URL of a server. */
  readonly address: string;
  /** The file to which all processes append what they do. */
  readonly log: string;
}

export type AssemblyEngine = Engine & { readonly journal: Journal };

export async function openPlace({ engine, address }: Place): Promise<AssemblyEngine> {
  const opened =
    engine === 'sqlite'
      ? await openSqlite({ file: address })
      : await openPostgres({ url: address, connectionsMax: 4 });
  return opened as unknown as AssemblyEngine;
}

/** Appends lines at once: what was written is there when the process is killed, and in the order of all processes. */
export function openLog({ log }: Place): (line: string) => void {
  const file = openSync(log, 'a');
  return (line) => void writeSync(file, `${line}\n`);
}

/** Makes an effect in the transaction of a step. */
export function writeEffect({ engine }: Place, tx: unknown, id: string, step: string): void | Promise<void> {
  if (engine === 'sqlite') {
    (tx as DatabaseSync).prepare('INSERT INTO effect (id, step) VALUES (?, ?)').run(id, step);
    return;
  }
  const insert = 'INSERT INTO effect (id, step) VALUES ($1, $2)';
  return (tx as PostgresTransaction).query(insert, [id, step]).then(() => {});
}

/** No key is unique here: what happens twice is to be seen twice. */
export async function prepareEffects(place: Place): Promise<void> {
  await query(place, 'CREATE TABLE effect (id text NOT NULL, step text NOT NULL)');
}

export async function effectsIn(place: Place): Promise<string[]> {
  const rows = await query(place, 'SELECT id, step FROM effect');
  return rows.map(({ id, step }) => `${id} ${step}`);
}

async function query({ engine, address }: Place, sql: string): Promise<Record<string, unknown>[]> {
  if (engine === 'sqlite') {
    const database = new DatabaseSync(address, { timeout: 5000 });
    try {
      return database.prepare(sql).all();
    } finally {
      database.close();
    }
  }
  const client = new pg.Client(address);
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
