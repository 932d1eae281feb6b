import { forgottenAfterMs, subject } from '@holdfast/contracts';
import type { WriteAudit } from './audit.ts';
import type { Database } from './database.ts';

const expiring = [
  ['settled', 'removed_at <= {schema}.now_ms()'],
  ['ledger_key', 'removed_at <= {schema}.now_ms()'],
  ['mark_other', 'marked_at <= {schema}.now_ms() - $2::double precision'],
  ['rate_limit', 'tat <= {schema}.now_ms()'],
  ['process', `heard_at <= {schema}.now_ms() - ${forgottenAfterMs}`],
] as const;

const parkedText = `DELETE FROM {schema}.parked WHERE id = ANY (ARRAY(
  SELECT id FROM {schema}.parked WHERE removed_at <= {schema}.now_ms() AND operation IS NULL
  ORDER BY removed_at LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING id`;

/** Removes at most `limit` expired rows and returns how many. Removed parked events are audited. */
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
    const act = { who: 'retention', why: 'their retention time is over', what: 'retention' };
    const subjects = ids.map((id) => subject('event', id));
    if (ids.length > 0) await writeAudit(tx, { ...act, subjects });
    return ids.length;
  });
  return limit - left + removed;
}
