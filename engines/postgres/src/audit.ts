import type { Act, AuditEntry } from '@holdfast/contracts';
import type { Database, PostgresTransaction, Row } from './database.ts';

/** An audit entry lists at most this many ids. Its `count` has the full number. */
const subjectsMax = 100;

const auditText = `INSERT INTO {schema}.audit (id, at, what, subjects, count, who, why)
  VALUES ($1, {schema}.now_ms(), $2, $3, $4, $5, $6)`;

export type WriteAudit = (
  tx: PostgresTransaction,
  what: AuditEntry['what'],
  subjects: readonly string[],
  act: Act,
) => Promise<void>;

export function auditOf(database: Database, newId: () => string): WriteAudit {
  return async (tx, what, subjects, { who, why }) => {
    const named = subjects.slice(0, subjectsMax);
    await database.rowsWithin(tx, auditText, [newId(), what, named, subjects.length, who, why]);
  };
}

export function entryOf([, id, at, what, subjects, count, who, why]: Row): AuditEntry {
  return {
    id: id as string,
    at: at as number,
    what: what as AuditEntry['what'],
    subjects: subjects as string[],
    count: count as number,
    who: who as string,
    why: why as string,
  };
}
