import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import type { Engine } from '@holdfast/contracts';
import { openPostgres, type PostgresEngine, type PostgresTransaction } from '@holdfast/postgres';
import { openSqlite } from '@holdfast/sqlite';
import pg from 'pg';
import { type BetweenWrites, type BrokerName, brokerNames, openBroker } from './open-broker.ts';

/** What the processes of the drill share; it goes to them as JSON. */
export interface Place {
  readonly engine: 'sqlite' | 'postgres' | BrokerName;
  /** A file, or the URL of a server. */
  readonly address: string;
  /** The file of the store beside a message broker. */
  readonly store?: string;
  /** The socket of the process that keeps the record. */
  readonly record: string;
}

/** An effect as handlers make it, in the order they were made. */
export interface Effect {
  readonly eventId: string;
  readonly lane: string;
  readonly number: number;
}

/** True: it shares no transaction with a handler, so effects are on the record only. */
export function isBroker(engine: Place['engine']): engine is BrokerName {
  return (brokerNames as readonly string[]).includes(engine);
}

/** Opens the engine; `beforeCommit` and `between` are called where the engine can tell. */
export async function openPlace(
  place: Place,
  beforeCommit: () => void = () => {},
  between: BetweenWrites = { onWritten() {}, onMoved() {} },
): Promise<Required<Engine>> {
  if (isBroker(place.engine)) return openBroker(place.engine, place.address, place.store!, between);
  return place.engine === 'sqlite'
    ? ((await openSqlite({ file: place.address, beforeWrite: beforeCommit })) as Required<Engine>)
    : ((await openServer(place.address)) as Required<Engine>);
}

/** A process that starts while the server is away tries again. */
async function openServer(url: string): Promise<PostgresEngine> {
  for (;;) {
    try {
      return await openPostgres({ url, connectionsMax: 4 });
    } catch (error) {
      if ((error as { code?: string }).code !== 'HOLDFAST_POSTGRES_UNAVAILABLE') throw error;
      await pause(50);
    }
  }
}

/** Makes an effect inside the transaction of a settlement. */
export function writeEffect(
  { engine }: Place,
  tx: unknown,
  { eventId, lane, number }: Effect,
): void | Promise<void> {
  if (engine === 'sqlite') {
    const insert = 'INSERT INTO effect (event_id, lane, number) VALUES (?, ?, ?)';
    (tx as DatabaseSync).prepare(insert).run(eventId, lane, number);
    return;
  }
  const insert = 'INSERT INTO effect (event_id, lane, number) VALUES ($1, $2, $3)';
  return (tx as PostgresTransaction).query(insert, [eventId, lane, number]).then(() => {});
}

/** No key is unique here: what happens twice is to be seen twice. */
export async function prepareEffects(place: Place): Promise<void> {
  const id = place.engine === 'sqlite' ? 'INTEGER PRIMARY KEY AUTOINCREMENT' : 'bigserial PRIMARY KEY';
  await run(
    place,
    `CREATE TABLE effect (n ${id}, event_id text NOT NULL, lane text NOT NULL, number integer NOT NULL)`,
  );
}

export async function effectsIn(place: Place): Promise<Effect[]> {
  const rows = await run(place, 'SELECT event_id, lane, number FROM effect ORDER BY n');
  return rows.map((row) => ({
    eventId: String(row.event_id),
    lane: String(row.lane),
    number: Number(row.number),
  }));
}

async function run({ engine, address }: Place, sql: string): Promise<Record<string, unknown>[]> {
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
