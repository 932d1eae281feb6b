import { randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import type { Contestant } from '../events/event-case.ts';
import { type Load, stepNames, stepResult, stepsPerSecond } from './load.ts';

/** What one would write by hand: a row for the run, and for each step a transaction that adds its result and updates the run. */
export async function barePostgres(url: string, load: Load): Promise<Contestant> {
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  await pool.query(`CREATE SCHEMA floor; CREATE TABLE floor.run (id uuid PRIMARY KEY, state int NOT NULL, done int NOT NULL, input text, result text);
    CREATE TABLE floor.step (run uuid, name text, result text, PRIMARY KEY (run, name))`);
  const insertRun = {
    name: 'run',
    text: `INSERT INTO floor.run VALUES ($1, 0, 0, $2, NULL)`,
  };
  const insertStep = { name: 'step', text: 'INSERT INTO floor.step VALUES ($1, $2, $3)' };
  const updateRun = { name: 'update', text: 'UPDATE floor.run SET done = $2, state = $3 WHERE id = $1' };
  return stepsPerSecond(
    load,
    async (order) => {
      const id = randomUUID();
      const client = await pool.connect();
      try {
        await client.query({ ...insertRun, values: [id, JSON.stringify(order)] });
        for (const [index, name] of stepNames.entries()) {
          const result = JSON.stringify(stepResult(name, order));
          await client.query('BEGIN');
          await client.query({ ...insertStep, values: [id, name, result] });
          const isLast = index === stepNames.length - 1;
          await client.query({ ...updateRun, values: [id, index + 1, isLast ? 1 : 0] });
          await client.query('COMMIT');
        }
      } finally {
        client.release();
      }
    },
    () => pool.end(),
  );
}

export async function bareSqlite(file: string, load: Load): Promise<Contestant> {
  const database = new DatabaseSync(file);
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -8192;
    CREATE TABLE run (id TEXT PRIMARY KEY, state INTEGER, done INTEGER, input TEXT, result TEXT) WITHOUT ROWID;
    CREATE TABLE step (run TEXT, name TEXT, result TEXT, PRIMARY KEY (run, name)) WITHOUT ROWID`);
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  const insertRun = database.prepare('INSERT INTO run VALUES (?, 0, 0, ?, NULL)');
  const insertStep = database.prepare('INSERT INTO step VALUES (?, ?, ?)');
  const updateRun = database.prepare('UPDATE run SET done = ?, state = ? WHERE id = ?');
  return stepsPerSecond(
    load,
    async (order) => {
      const id = randomUUID();
      insertRun.run(id, JSON.stringify(order));
      for (const [index, name] of stepNames.entries()) {
        const result = JSON.stringify(await stepResult(name, order));
        begin.run();
        insertStep.run(id, name, result);
        updateRun.run(index + 1, index === stepNames.length - 1 ? 1 : 0, id);
        commit.run();
      }
    },
    async () => database.close(),
  );
}
