import pg from 'pg';
import type { Database, PostgresTransaction } from './database.ts';
import { PostgresSchemaError } from './postgres-errors.ts';
import { type Migration, migrations } from './schema/migrations.ts';

/** Any number will do, but all processes must use the same one for the advisory lock. */
const lockClass = 0x40fd;

/** Migrates the schema to the newest version. If several processes start together, one migrates and the others wait. */
export async function migrate(
  database: Database,
  name: string,
  known: readonly Migration[] = migrations,
  mustExist = false,
): Promise<void> {
  const wanted = known.at(-1)!.version;
  await database.transaction(async (tx) => {
    await lockSchema(tx, name);
    const found = await versionOf(tx, name);
    if (found.oldest > wanted) throw new PostgresSchemaError(name, found.version, wanted);
    if (found.version >= wanted) return;
    if (mustExist && found.version === 0) throw new PostgresSchemaError(name);
    const schema = pg.escapeIdentifier(name);
    await tx.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
    await tx.query(`SET LOCAL search_path TO ${schema}, pg_temp`);
    await tx.query('CREATE TABLE IF NOT EXISTS schema_version (version int NOT NULL, oldest int NOT NULL)');
    for (const { sql, version } of known) if (version > found.version) await tx.query(sql);
    await tx.query('DELETE FROM schema_version');
    await tx.query('INSERT INTO schema_version VALUES ($1, $2)', [wanted, known.at(-1)!.oldest]);
  });
}

/** Only one transaction at a time may change the schema. The lock ends with the transaction. */
export async function lockSchema(tx: PostgresTransaction, name: string): Promise<void> {
  await tx.query('SELECT pg_advisory_xact_lock($1, hashtext($2))', [lockClass, name]);
}

async function versionOf(
  tx: PostgresTransaction,
  name: string,
): Promise<{ version: number; oldest: number }> {
  const table = `${pg.escapeIdentifier(name)}.schema_version`;
  const { rows } = await tx.query('SELECT to_regclass($1) IS NOT NULL AS there', [table]);
  if (!(rows[0] as { there: boolean }).there) return { version: 0, oldest: 0 };
  const found = (await tx.query(`SELECT version, oldest FROM ${table}`)).rows[0];
  return (found ?? { version: 0, oldest: 0 }) as { version: number; oldest: number };
}
