import pg from 'pg';
import type { Database, Row } from './database.ts';
import { lockSchema } from './migrate.ts';

/** A time-ordered id begins with its time in ms, as 12 hex digits. Its fifth digit changes every 2^28 ms. */
const digitsMs = 2 ** 28;
/** About six days. */
const partitionMs = 2 * digitsMs;
const partitionsAhead = 5;

const nowText = 'SELECT {schema}.now_ms()';
const tablesText = `SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = '{schema}.mark'::regclass AND c.relname <> 'mark_other'`;

/**
 * Creates partitions of the table `mark` (records of handled events). Dropping an old partition needs no
 * vacuum.
 */
export async function createMarkPartitions(database: Database, schema: string): Promise<void> {
  const [[now]] = (await database.rows(nowText)) as [[number]];
  const current = Math.floor(now / partitionMs);
  const wanted = Array.from(
    { length: partitionsAhead + 2 },
    (_, index) => (current - 1 + index) * partitionMs,
  );
  if (isComplete(wanted, await database.rows(tablesText))) return;
  await database.transaction(async (tx) => {
    await lockSchema(tx, schema);
    if (isComplete(wanted, await database.rowsWithin(tx, tablesText))) return;
    // Transactions that write marks wait for this lock, so give up soon.
    await tx.query(`SET LOCAL lock_timeout = '2s'`);
    const parent = `${pg.escapeIdentifier(schema)}.mark`;
    for (const startMs of wanted) {
      const range = `FROM ('${prefixOf(startMs)}') TO ('${prefixOf(startMs + partitionMs)}')`;
      const table = `${pg.escapeIdentifier(schema)}.${tableOf(startMs)}`;
      await tx.query(`CREATE TABLE IF NOT EXISTS ${table} PARTITION OF ${parent} FOR VALUES ${range}`);
    }
  });
}

export async function dropMarkPartitions(
  database: Database,
  schema: string,
  keepMs: number,
): Promise<number> {
  const [[now]] = (await database.rows(nowText)) as [[number]];
  let dropped = 0;
  for (const [found] of await database.rows(tablesText)) {
    const name = found as string;
    if (startOf(name) + partitionMs + keepMs > now) continue;
    const table = `${pg.escapeIdentifier(schema)}.${name}`;
    // If an old event was replayed recently, its old partition has a recent mark.
    const young = await database.rows(`SELECT FROM ${table} WHERE marked_at > $1 LIMIT 1`, [
      Math.floor(now - keepMs),
    ]);
    if (young.length > 0) continue;
    await database.transaction(async (tx) => {
      await tx.query(`SET LOCAL lock_timeout = '2s'`);
      await tx.query(`DROP TABLE ${table}`);
    });
    dropped += 1;
  }
  return dropped;
}

function isComplete(wanted: readonly number[], rows: readonly Row[]): boolean {
  const names = new Set(rows.map(([name]) => name));
  return wanted.every((startMs) => names.has(tableOf(startMs)));
}

function tableOf(startMs: number): string {
  return `mark_${prefixOf(startMs)}`;
}

function startOf(table: string): number {
  return Number.parseInt(table.slice('mark_'.length), 16) * digitsMs;
}

/** Returns the first five hex digits of ids from that time. */
function prefixOf(ms: number): string {
  return (ms / digitsMs).toString(16).padStart(5, '0');
}
