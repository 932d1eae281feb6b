import {
  type Act,
  type Audit,
  type AuditEntry,
  assertAuditEntry,
  assertAuditQuestion,
  assertUndoable,
  auditEntryOf,
  clampMs,
  type NewAuditEntry,
  numberIn,
  type Subject,
} from '@holdfast/contracts';
import { storableText } from './column-values.ts';
import type { Database, PostgresTransaction, Row } from './database.ts';
import { jsonOf, textOf } from './envelope-columns.ts';

const columns = 'id, at, what, subjects, count, who, why, undoes, undone_by, before';
const writeText = `WITH entry AS (
    INSERT INTO {schema}.audit (${columns}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULL, $9) RETURNING number
  ), undone AS (UPDATE {schema}.audit SET undone_by = $1 WHERE id = $8)
  INSERT INTO {schema}.audit_subject SELECT DISTINCT subject, number FROM entry, unnest($4::text[]) AS s(subject)`;
const undoneText = 'SELECT undone_by FROM {schema}.audit WHERE id = $1 FOR UPDATE';
const nowText = 'SELECT {schema}.now_ms()';

/**
 * Writes the audit entry of an act, in the act's transaction. Rejects if `undoes` names an entry that cannot
 * be undone.
 */
export type WriteAudit = (tx: PostgresTransaction, entry: NewAuditEntry) => Promise<AuditEntry>;

export function auditOf(database: Database, newId: () => string): WriteAudit {
  return async (tx, entry) => {
    await assertMayUndo(database, tx, entry);
    const [[now]] = (await database.rowsWithin(tx, nowText)) as [[number]];
    const written = auditEntryOf(storable(entry), newId(), now);
    const { id, at, what, subjects, count, who, why, undoes = null, before } = written;
    const json = before === undefined ? null : JSON.stringify(before);
    await database.rowsWithin(tx, writeText, [id, at, what, subjects, count, who, why, undoes, json]);
    return { ...written, before: jsonOf(json) };
  };
}

/**
 * Rejects if the act undoes an unknown entry, or one that was undone before. The entry stays locked until the
 * transaction ends.
 */
export async function assertMayUndo(
  database: Database,
  tx: PostgresTransaction,
  { undoes }: Act,
): Promise<void> {
  if (undoes === undefined) return;
  const [row] = await database.rowsWithin(tx, undoneText, [undoes]);
  assertUndoable(undoes, row && { undoneBy: textOf(row[0]) });
}

/** Replaces the characters that PostgreSQL cannot store. */
function storable(entry: NewAuditEntry): NewAuditEntry {
  const { who, why, subjects } = entry;
  return {
    ...entry,
    ...{ who: storableText(who), why: storableText(why) },
    subjects: subjects.map((each) => storableText(each) as Subject),
  };
}

export function postgresAudit(database: Database, writeAudit: WriteAudit): Audit {
  return {
    async record(entry) {
      assertAuditEntry(entry);
      return database.transaction((tx) => writeAudit(tx, entry));
    },

    async get(id) {
      const [row] = await database.rows(`SELECT number, ${columns} FROM {schema}.audit WHERE id = $1`, [id]);
      return row && entryOf(row);
    },

    async list(question, { limit, cursor }) {
      assertAuditQuestion(question);
      const { who, what, subject, from, to } = question;
      const conditions: string[] = [];
      const values: unknown[] = [];
      const add = (condition: string, value: unknown) => {
        values.push(value);
        conditions.push(condition.replace('?', `$${values.length}`));
      };
      if (subject !== undefined) add('s.subject = ?', subject);
      if (cursor !== undefined) add('number < ?', numberIn(cursor));
      if (who !== undefined) add('who = ?', who);
      if (what !== undefined) add('what = ANY (?)', typeof what === 'string' ? [what] : what);
      if (from !== undefined) add('at >= ?', Math.ceil(clampMs(from)));
      if (to !== undefined) add('at < ?', Math.ceil(clampMs(to)));
      const source =
        subject === undefined ? 'audit' : 'audit_subject AS s JOIN {schema}.audit USING (number)';
      const where = conditions.length === 0 ? 'true' : conditions.join(' AND ');
      values.push(limit + 1);
      const rows = await database.search(
        `SELECT number, ${columns} FROM {schema}.${source} WHERE ${where} ORDER BY number DESC LIMIT $${values.length}`,
        values,
      );
      const shown = rows.slice(0, limit);
      return {
        items: shown.map(entryOf),
        cursor: rows.length > limit ? String(shown.at(-1)?.[0]) : undefined,
      };
    },
  };
}

function entryOf([, id, at, what, subjects, count, who, why, undoes, undoneBy, before]: Row): AuditEntry {
  return {
    id: id as string,
    at: at as number,
    what: what as string,
    subjects: subjects as Subject[],
    count: count as number,
    who: who as string,
    why: why as string,
    ...(undoes !== null && { undoes: undoes as string }),
    undoneBy: textOf(undoneBy),
    before: jsonOf(before),
  };
}
