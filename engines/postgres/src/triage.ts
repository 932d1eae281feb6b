import {
  type Act,
  type AuditEntry,
  assertDurationMs,
  assertEdit,
  assertFilter,
  assertReason,
  clampMs,
  editDiff,
  jsonWithInfinity,
  numberIn,
  type ParkedGroup,
  placeIn,
  type SizeLimits,
  type Triage,
  TriageError,
  type TriageRule,
} from '@holdfast/contracts';
import { entryOf, type WriteAudit } from './audit.ts';
import type { Database, Row } from './database.ts';
import { extrasOf } from './envelope-columns.ts';
import {
  originalText,
  parkedColumns,
  parkedOf,
  parkText,
  parkValues,
  summaryColumns,
  summaryOf,
} from './parked-event.ts';
import { parkedQuery } from './parked-query.ts';
import { payloadColumns } from './payload-columns.ts';
import { postgresReplays } from './replays.ts';

export interface TriageParts {
  readonly database: Database;
  readonly limits: SizeLimits;
  readonly keepParkedMs: number;
  readonly writeAudit: WriteAudit;
  newId(): string;
}

const getText = `SELECT ${parkedColumns} FROM {schema}.parked WHERE id = $1`;
const editText = `UPDATE {schema}.parked SET body = $2, bytes = $3, bytes_are_text = $4, extras = $5, original = coalesce(original, $6),
  edits = $7 WHERE id = $1 RETURNING ${parkedColumns}`;

export function postgresTriage(parts: TriageParts): Triage {
  const { database, keepParkedMs, writeAudit } = parts;

  /**
   * Executes `update` on those events that have this status and belong to no replay, writes an audit entry for them,
   * and returns which were changed.
   */
  async function change(
    what: AuditEntry['what'],
    ids: readonly string[],
    act: Act,
    status: string,
    update: string,
    ...values: unknown[]
  ): Promise<boolean[]> {
    assertReason(act);
    return database.transaction(async (tx) => {
      const text = `UPDATE {schema}.parked SET ${update} WHERE id = ANY ($1) AND status = $2 AND operation IS NULL RETURNING id`;
      const rows = await database.rowsWithin(tx, text, [ids, status, ...values]);
      const changed = new Set(rows.map(([id]) => id as string));
      if (changed.size > 0)
        await writeAudit(
          tx,
          what,
          [...new Set(ids)].filter((id) => changed.has(id)),
          act,
        );
      return ids.map((id) => changed.delete(id));
    });
  }

  return {
    async put(events) {
      const first = new Map(events.toReversed().map((event) => [event.id, event]));
      const once = [...first.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
      if (once.length === 0) return [];
      const put = await database.transaction(async (tx) => {
        const ids = once.map(({ id }) => id);
        await database.rowsWithin(tx, 'SELECT {schema}.count_failed_again($1, $2)', [
          ids,
          once.map(({ replay }) => replay ?? null),
        ]);
        return database.rowsWithin(tx, parkText, [clampMs(keepParkedMs), ...parkValues(once)]);
      });
      const changed = new Set(put.map(([id]) => id as string));
      return events.map(({ id }) => changed.delete(id));
    },

    async get(id) {
      const [row] = await database.rows(getText, [id]);
      return row && parkedOf(row);
    },

    async list(filter, { limit, cursor }) {
      const { where, values, next } = parkedQuery(filter);
      const [at, id] = cursor === undefined ? [null, null] : placeIn(cursor);
      const rows = await database.rows(
        `SELECT ${summaryColumns} FROM {schema}.parked WHERE ${where}
           AND ($${next}::bigint IS NULL OR (parked_at, id) < ($${next}, $${next + 1}::text))
         ORDER BY parked_at DESC, id DESC LIMIT $${next + 2}`,
        [...values, at, id, limit + 1],
      );
      const items = rows.slice(0, limit).map(summaryOf);
      const last = items.at(-1);
      return {
        items,
        cursor: rows.length > limit && last ? JSON.stringify([last.parkedAt, last.id]) : undefined,
      };
    },

    async count(filter) {
      const { where, values } = parkedQuery(filter);
      const [row] = await database.rows(`SELECT count(*) FROM {schema}.parked WHERE ${where}`, values);
      return row![0] as number;
    },

    async groups(filter, { limit, cursor }) {
      const { where, values, next } = parkedQuery(filter);
      const [count, fingerprint] = cursor === undefined ? [null, null] : placeIn(cursor);
      // The inner query selects the groups of this page. Their topics and their latest events are read only for these
      // groups.
      const rows = await database.rows(
        `SELECT g.fingerprint, latest.reason, latest.message, g.count, g.first_at, g.last_at,
           ARRAY(SELECT DISTINCT topic FROM {schema}.parked WHERE ${where} AND parked.fingerprint = g.fingerprint)
         FROM (SELECT fingerprint, count(*) AS count, min(parked_at) AS first_at, max(parked_at) AS last_at
           FROM {schema}.parked WHERE ${where} GROUP BY fingerprint
           HAVING $${next}::bigint IS NULL OR count(*) < $${next} OR (count(*) = $${next} AND fingerprint > $${next + 1})
           ORDER BY count DESC, fingerprint LIMIT $${next + 2}) AS g,
         LATERAL (SELECT reason, message FROM {schema}.parked WHERE ${where} AND parked.fingerprint = g.fingerprint
           ORDER BY parked_at DESC, id DESC LIMIT 1) AS latest
         ORDER BY g.count DESC, g.fingerprint`,
        [...values, count, fingerprint, limit + 1],
      );
      const items = rows.slice(0, limit).map(groupOf);
      const last = items.at(-1);
      return {
        items,
        cursor: rows.length > limit && last ? JSON.stringify([last.count, last.fingerprint]) : undefined,
      };
    },

    async edit(id, edit, act) {
      assertReason(act);
      assertEdit(edit, parts.limits);
      return database.transaction(async (tx) => {
        const [row] = await database.rowsWithin(tx, `${getText} FOR UPDATE`, [id]);
        if (!row) return undefined;
        const event = parkedOf(row);
        if (event.operation !== undefined) throw new TriageError('BUSY', `a replay has event ${id}`);
        const edited = { ...event, ...edit };
        const [[at]] = (await database.rowsWithin(tx, 'SELECT {schema}.now_ms()')) as [[number]];
        const edits = [...event.edits, { ...act, at, changes: editDiff(event, edited) }];
        const { body, bytes, bytesAreText } = payloadColumns(edited.payload);
        const columns = [
          body,
          bytes,
          bytesAreText,
          extrasOf(edited, id),
          originalText(event),
          JSON.stringify(edits),
        ];
        const [changed] = await database.rowsWithin(tx, editText, [id, ...columns]);
        await writeAudit(tx, 'edit', [id], act);
        return parkedOf(changed!);
      });
    },

    discard: (ids, act) =>
      change('discard', ids, act, 'parked', `status = 'discarded', discarded = $3`, JSON.stringify(act)),
    restore: (ids, act) => change('restore', ids, act, 'discarded', `status = 'parked', discarded = NULL`),
    async keep(ids, keepMs, act) {
      assertDurationMs('keepMs', keepMs);
      const update = 'removed_at = {schema}.now_ms() + ceil($3::double precision)::bigint';
      return change('keep', ids, act, 'parked', update, clampMs(keepMs));
    },

    async resolve(replayed) {
      const [row] = await database.rows('SELECT {schema}.resolve($1, $2)', [
        replayed.map(({ id }) => id),
        replayed.map(({ operation }) => operation),
      ]);
      const told = new Set(row![0] as string[]);
      return replayed.map(({ id }) => told.delete(id));
    },

    replays: postgresReplays(parts),

    async rules() {
      const rows = await database.rows('SELECT rule::text FROM {schema}.triage_rule ORDER BY number');
      return rows.map(([rule]) => JSON.parse(rule as string) as TriageRule);
    },

    async setRule(rule, act) {
      assertFilter(rule.filter);
      assertReason(act);
      await database.transaction(async (tx) => {
        const text = `INSERT INTO {schema}.triage_rule (name, rule) VALUES ($1, $2)
          ON CONFLICT (name) DO UPDATE SET rule = excluded.rule`;
        await database.rowsWithin(tx, text, [rule.name, jsonWithInfinity(rule)]);
        await writeAudit(tx, 'rule_set', [rule.name], act);
      });
    },

    async removeRule(name, act) {
      assertReason(act);
      return database.transaction(async (tx) => {
        const text = 'DELETE FROM {schema}.triage_rule WHERE name = $1 RETURNING 1';
        if ((await database.rowsWithin(tx, text, [name])).length === 0) return false;
        await writeAudit(tx, 'rule_removed', [name], act);
        return true;
      });
    },

    async audit({ limit, cursor }) {
      const rows = await database.rows(
        `SELECT number, id, at, what, subjects, count, who, why FROM {schema}.audit
         WHERE number < coalesce($1::bigint, number + 1) ORDER BY number DESC LIMIT $2`,
        [cursor === undefined ? null : numberIn(cursor), limit + 1],
      );
      const shown = rows.slice(0, limit);
      return {
        items: shown.map(entryOf),
        cursor: rows.length > limit ? String(shown.at(-1)?.[0]) : undefined,
      };
    },
  };
}

function groupOf([fingerprint, reason, message, count, firstAt, lastAt, topics]: Row): ParkedGroup {
  return {
    fingerprint: fingerprint as string,
    reason: reason as string,
    message: message as string,
    count: count as number,
    firstAt: firstAt as number,
    lastAt: lastAt as number,
    topics: topics as string[],
  };
}
