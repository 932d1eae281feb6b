import pg from 'pg';
import type { Database } from './database.ts';

const weekMs = 7 * 24 * 60 * 60 * 1000;
/** Weeks for which there is a table before anyone needs it. */
const weeksAhead = 4;

const missingText = `SELECT bucket FROM generate_series({schema}.now_ms() / ${weekMs} - 1, {schema}.now_ms() / ${weekMs} + ${weeksAhead})
  AS g(bucket) WHERE to_regclass(format('{schema}.mark_%s', bucket)) IS NULL`;
const oldText = `SELECT substr(c.relname, 6)::int FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = '{schema}.mark'::regclass AND c.relname ~ '^mark_[0-9]+$'
    AND (substr(c.relname, 6)::bigint + 1) * ${weekMs} + $1::double precision < {schema}.now_ms()`;

/** Marks of a week are a table of their own, so that old ones go with the table and leave nothing to vacuum. */
export async function makeBuckets(database: Database, schema: string): Promise<void> {
  const missing = await database.rows(missingText);
  if (missing.length === 0) return;
  await database.transaction(async (tx) => {
    // Short: who marks waits behind us.
    await tx.query(`SET LOCAL lock_timeout = '2s'`);
    for (const [bucket] of missing) {
      const table = `${pg.escapeIdentifier(schema)}.mark_${bucket}`;
      await tx.query(
        `CREATE TABLE IF NOT EXISTS ${table} PARTITION OF ${pg.escapeIdentifier(schema)}.mark FOR VALUES IN (${bucket})`,
      );
    }
  });
}

/** Drops the weeks in which nothing was marked for so long; says how many. */
export async function dropBuckets(database: Database, schema: string, keepMs: number): Promise<number> {
  let dropped = 0;
  for (const [bucket] of await database.rows(oldText, [keepMs])) {
    const table = `${pg.escapeIdentifier(schema)}.mark_${bucket}`;
    // An old event may have been marked lately: a replay out of the parking lot.
    const young = `SELECT FROM ${table} WHERE marked_at > {schema}.now_ms() - $1::double precision LIMIT 1`;
    if ((await database.rows(young, [keepMs])).length > 0) continue;
    await database.transaction(async (tx) => {
      await tx.query(`SET LOCAL lock_timeout = '2s'`);
      await tx.query(`DROP TABLE ${table}`);
    });
    dropped += 1;
  }
  return dropped;
}
