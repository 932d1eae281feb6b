import type { WriteAudit } from './audit.ts';
import type { Database } from './database.ts';

/** Tables of which rows go one by one, with the condition for it. */
const expiring = [
  ['settled', 'removed_at <= {schema}.now_ms()'],
  ['ledger_key', 'removed_at <= {schema}.now_ms()'],
  ['mark_other', 'marked_at <= {schema}.now_ms() - $2::double precision'],
  ['counter', 'tat <= {schema}.now_ms()'],
] as const;

const parkedText = `DELETE FROM {schema}.parked WHERE id = ANY (ARRAY(
  SELECT id FROM {schema}.parked WHERE removed_at <= {schema}.now_ms() AND operation IS NULL
  ORDER BY removed_at LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING id`;

/** Removes what has outlived its time, at most `limit`; says how many. A parked event leaves an entry in the audit log. */
export async function sweepRows(
  database: Database,
  limit: number,
  keepMarksMs: number,
  writeAudit: WriteAudit,
): Promise<number> {
  let left = limit;
  for (const [table, isOver] of expiring) {
    const rows = await database.rows(
      `DELETE FROM {schema}.${table} WHERE ctid = ANY (ARRAY(
         SELECT ctid FROM {schema}.${table} WHERE ${isOver} LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING 1`,
      isOver.includes('$2') ? [left, keepMarksMs] : [left],
    );
    left -= rows.length;
  }
  const removed = await database.transaction(async (tx) => {
    const ids = (await database.rowsWithin(tx, parkedText, [left])).map(([id]) => id as string);
    const act = { who: 'retention', why: 'they had been kept as long as was said' };
    if (ids.length > 0) await writeAudit(tx, 'retention', ids, act);
    return ids.length;
  });
  return limit - left + removed;
}
