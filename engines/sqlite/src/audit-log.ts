import {
  type Act,
  type Audit,
  type AuditEntry,
  type AuditQuestion,
  assertAuditEntry,
  assertAuditQuestion,
  assertUndoable,
  auditEntryOf,
  type NewAuditEntry,
  numberIn,
  type Page,
  type PageRequest,
} from '@holdfast/contracts';
import type { Store } from './store.ts';

type Row = Record<string, unknown>;

/** The audit log of changes by operators. Triggers of the schema maintain the index by subject. */
export class AuditLog implements Audit {
  readonly #store: Store;
  readonly #find;
  readonly #add;
  readonly #noteUndone;
  readonly #forget;

  constructor(store: Store) {
    this.#store = store;
    this.#find = store.prepare('SELECT * FROM holdfast_audit WHERE id = ?');
    this.#add = store.prepare(`
      INSERT INTO holdfast_audit (id, at, what, who, why, subjects, count, undoes, before)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`);
    this.#noteUndone = store.prepare('UPDATE holdfast_audit SET undone_by = ? WHERE id = ?');
    this.#forget = store.prepare(`
      DELETE FROM holdfast_audit WHERE number IN (
        SELECT number FROM holdfast_audit WHERE at <= ? ORDER BY number LIMIT ? + 0)`);
  }

  async record(entry: NewAuditEntry): Promise<AuditEntry> {
    assertAuditEntry(entry);
    return this.#store.write((_, wall) => this.write(entry, wall));
  }

  async get(id: string): Promise<AuditEntry | undefined> {
    return this.#store.look(() => {
      const row = this.#find.get(id);
      return row && toEntry(row);
    });
  }

  async list(question: AuditQuestion, { limit, cursor }: PageRequest): Promise<Page<AuditEntry>> {
    assertAuditQuestion(question);
    const { who, what, subject, from, to } = question;
    const conditions: [sql: string, value: string | number | undefined][] = [
      ['who = ?', who],
      ['what IN (SELECT value FROM json_each(?))', what === undefined ? what : JSON.stringify([what].flat())],
      ['number IN (SELECT number FROM holdfast_audit_subject WHERE subject = ?)', subject],
      ['at >= ?', from],
      ['at < ?', to],
      ['number < ?', cursor === undefined ? undefined : numberIn(cursor)],
    ];
    const given = conditions.filter(([, value]) => value !== undefined);
    const sql = `SELECT * FROM holdfast_audit WHERE ${['true', ...given.map(([each]) => each)].join(' AND ')}
      ORDER BY number DESC LIMIT ? + 0`;
    return this.#store.look(() => {
      const rows = this.#store.prepare(sql).all(...given.map(([, value]) => value!), limit + 1);
      const shown = rows.slice(0, limit);
      return {
        items: shown.map(toEntry),
        cursor: rows.length > limit ? String(shown.at(-1)?.number) : undefined,
      };
    });
  }

  /** Throws if `undoes` names an entry that cannot be undone. Call it before the act changes anything. */
  assertMayUndo({ undoes }: Act): void {
    if (undoes === undefined) return;
    const row = this.#find.get(undoes);
    assertUndoable(undoes, row && toEntry(row));
  }

  /**
   * Writes an entry. If the new entry undoes an earlier one, the earlier one gets the id of the new one as
   * `undoneBy`. Call it within a transaction.
   */
  write(entry: NewAuditEntry, wall: number): AuditEntry {
    this.assertMayUndo(entry);
    const written = auditEntryOf(entry, this.#store.newId(), wall);
    const { id, at, what, who, why, subjects, count, undoes, before } = written;
    this.#add.run(
      ...[id, at, what, who, why, JSON.stringify(subjects), count, undoes ?? null],
      before === undefined ? null : JSON.stringify(before),
    );
    if (undoes !== undefined) this.#noteUndone.run(id, undoes);
    return written;
  }

  sweep(before: number, limit: number): number {
    return Number(this.#forget.run(before, limit).changes);
  }
}

function toEntry(row: Row): AuditEntry {
  return {
    id: String(row.id),
    at: Number(row.at),
    ...toAct(row),
    what: String(row.what),
    subjects: JSON.parse(String(row.subjects)),
    count: Number(row.count),
    before: row.before === null ? undefined : JSON.parse(String(row.before)),
    undoneBy: (row.undone_by as string | null) ?? undefined,
  };
}

export function toAct({ who, why, undoes }: Row): Act {
  return { who: String(who), why: String(why), ...(undoes !== null && { undoes: String(undoes) }) };
}
