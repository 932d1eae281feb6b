import {
  type Act,
  assertBreakdown,
  assertBucketMs,
  assertEdit,
  assertEditVersion,
  assertFilter,
  assertReason,
  type BreakdownBy,
  bucketsMax,
  clampMs,
  editDiff,
  filterIsCounted,
  jsonWithInfinity,
  lookMaxOf,
  type NewAuditEntry,
  type PageRequest,
  type ParkedFilter,
  type ParkedGroup,
  type Place,
  placeIn,
  type SizeLimits,
  subject,
  type Triage,
  TriageError,
  type TriageRule,
} from '@holdfast/contracts';
import type { WriteAudit } from './audit.ts';
import type { Database, PostgresTransaction, Row } from './database.ts';
import { extrasOf, jsonOf, textOf } from './envelope-columns.ts';
import { fromHeaderText, toHeaderText } from './header-text.ts';
import { postgresOperations } from './operations.ts';
import { countedProperty, type ParkedCounts } from './parked-counts.ts';
import {
  originalText,
  parkedColumns,
  parkedOf,
  parkText,
  parkValues,
  summaryColumns,
  summaryOf,
} from './parked-event.ts';
import { addPlace, indexedQuery, type ParkedQuery, parkedQuery } from './parked-query.ts';
import { payloadColumns } from './payload-columns.ts';

export interface TriageParts {
  readonly database: Database;
  readonly limits: SizeLimits;
  readonly keepParkedMs: number;
  readonly writeAudit: WriteAudit;
  readonly parkedCounts: ParkedCounts;
  newId(): string;
}

const getText = `SELECT ${parkedColumns} FROM {schema}.parked WHERE id = $1`;
const editText = `UPDATE {schema}.parked SET body = $2, bytes = $3, bytes_are_text = $4, extras = $5, original = coalesce(original, $6),
  edits = $7, version = version + 1 WHERE id = $1 RETURNING ${parkedColumns}`;

export function postgresTriage(parts: TriageParts): Triage {
  const { database, keepParkedMs, writeAudit, parkedCounts } = parts;

  async function knownRule(tx: PostgresTransaction, name: string): Promise<TriageRule | undefined> {
    const text = 'SELECT rule::text FROM {schema}.triage_rule WHERE name = $1 FOR UPDATE';
    const [row] = await database.rowsWithin(tx, text, [name]);
    return jsonOf(row?.[0]);
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
      parkedCounts.changed(put.length);
      const changed = new Set(put.map(([id]) => id as string));
      return events.map(({ id }) => changed.delete(id));
    },

    async get(id) {
      const [row] = await database.rows(getText, [id]);
      return row && parkedOf(row);
    },

    async list(filter, page) {
      const { limit, cursor } = page;
      const from = cursor === undefined ? undefined : placeIn(cursor);
      const query = parkedQuery(filter);
      if (from) addPlace(query, '<', from);
      const lookedTo = await lastToLookAt(database, filter, page, from);
      if (lookedTo) addPlace(query, '>=', lookedTo);
      const text = query.first(summaryColumns, 'DESC', query.parameter(limit + 1));
      const rows = await database.search(text, query.values);
      const items = rows.slice(0, limit).map(summaryOf);
      const last = items.at(-1);
      if (rows.length > limit && last) return { items, cursor: JSON.stringify([last.parkedAt, last.id]) };
      return lookedTo
        ? { items, cursor: JSON.stringify(lookedTo), looked: Math.floor(lookMaxOf(page)) }
        : { items, cursor: undefined };
    },

    async count(filter) {
      if (filterIsCounted(filter)) return parkedCounts.count(filter);
      const { where, values } = parkedQuery(filter);
      const [row] = await database.search(`SELECT count(*) FROM {schema}.parked WHERE ${where}`, values);
      return row![0] as number;
    },

    async groups(filter, { limit, cursor }) {
      const [count, fingerprint] = cursor === undefined ? [null, null] : placeIn(cursor);
      const rows = filterIsCounted(filter)
        ? await parkedCounts.groups(filter, count, fingerprint, limit + 1)
        : await scanGroups(database, parkedQuery(filter), count, fingerprint, limit + 1);
      const items = rows.slice(0, limit).map(groupOf);
      const last = items.at(-1);
      return {
        items,
        cursor: rows.length > limit && last ? JSON.stringify([last.count, last.fingerprint]) : undefined,
      };
    },

    async breakdown(filter, by, limit) {
      assertFilter(filter);
      assertBreakdown(by, limit);
      const counted = countedProperty(filter, by);
      const rows = counted
        ? await parkedCounts.breakdown(filter, counted, limit)
        : await scanBreakdown(database, filter, by, limit);
      const items = rows.map(([value, count]) => {
        const text = textOf(value);
        const read = typeof by === 'object' && text !== undefined ? fromHeaderText(text) : text;
        return { value: read, count: count as number };
      });
      const all = (rows[0]?.[2] as number | undefined) ?? 0;
      return { items, others: all - items.reduce((sum, { count }) => sum + count, 0) };
    },

    async histogram(filter, bucketMs) {
      assertFilter(filter);
      assertBucketMs(bucketMs);
      const query = parkedQuery(filter);
      const bucket = `${query.parameter(bucketMs)}::bigint`;
      const rows = await database.search(
        `SELECT parked_at / ${bucket} * ${bucket} AS at, count(*) FROM {schema}.parked WHERE ${query.where}
         GROUP BY at ORDER BY at DESC LIMIT ${bucketsMax}`,
        query.values,
      );
      return rows.map(([at, count]) => ({ at: at as number, count: count as number })).toReversed();
    },

    async edit(id, edit, act) {
      assertReason(act);
      assertEdit(edit, parts.limits);
      return database.transaction(async (tx) => {
        const [row] = await database.rowsWithin(tx, `${getText} FOR UPDATE`, [id]);
        if (!row) return undefined;
        const event = parkedOf(row);
        if (event.operation !== undefined) throw new TriageError('BUSY', `a replay has event ${id}`);
        assertEditVersion(id, event.version, edit);
        const { payload = event.payload, headers = event.headers } = edit;
        const edited = { ...event, payload, headers };
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
        await writeAudit(tx, { ...act, what: 'edit', subjects: [subject('event', id)] });
        return parkedOf(changed!);
      });
    },

    async resolve(replayed) {
      const [row] = await database.rows('SELECT {schema}.resolve($1, $2)', [
        replayed.map(({ id }) => id),
        replayed.map(({ operation }) => operation),
      ]);
      const told = new Set(row![0] as string[]);
      return replayed.map(({ id }) => told.delete(id));
    },

    operations: postgresOperations(parts),

    async rules() {
      const rows = await database.rows('SELECT rule::text FROM {schema}.triage_rule ORDER BY number');
      return rows.map(([rule]) => JSON.parse(rule as string) as TriageRule);
    },

    async setRule(rule, act) {
      assertFilter(rule.filter);
      assertReason(act);
      await database.transaction(async (tx) => {
        const before = await knownRule(tx, rule.name);
        const text = `INSERT INTO {schema}.triage_rule (name, rule) VALUES ($1, $2)
          ON CONFLICT (name) DO UPDATE SET rule = excluded.rule`;
        await database.rowsWithin(tx, text, [rule.name, jsonWithInfinity(rule)]);
        await writeAudit(tx, ruleEntry('rule_set', rule.name, act, before));
      });
    },

    async removeRule(name, act) {
      assertReason(act);
      return database.transaction(async (tx) => {
        const before = await knownRule(tx, name);
        if (!before) return false;
        await database.rowsWithin(tx, 'DELETE FROM {schema}.triage_rule WHERE name = $1', [name]);
        await writeAudit(tx, ruleEntry('rule_removed', name, act, before));
        return true;
      });
    },
  };
}

/** Returns the position of the last event that a search may read; `undefined`: it may read all. */
async function lastToLookAt(
  database: Database,
  filter: ParkedFilter,
  page: PageRequest,
  from: Place | undefined,
): Promise<Place | undefined> {
  const lookMax = Math.floor(lookMaxOf(page));
  if (lookMax >= Number.MAX_SAFE_INTEGER) return undefined;
  const query = indexedQuery(filter);
  if (from) addPlace(query, '<', from);
  const most = query.parameter(lookMax + 1);
  const text = `SELECT parked_at, id FROM (${query.first('parked_at, id', 'DESC', most)}) AS p
    ORDER BY parked_at DESC, id DESC OFFSET ${query.parameter(lookMax - 1)}`;
  const rows = await database.search(text, query.values);
  return rows.length > 1 ? (rows[0] as unknown as Place) : undefined;
}

async function scanGroups(
  database: Database,
  query: ParkedQuery,
  count: number | null,
  fingerprint: string | null,
  limit: number,
): Promise<readonly Row[]> {
  const after = `${query.parameter(count)}::bigint`;
  const afterName = `${query.parameter(fingerprint)}::text`;
  const { where } = query;
  // The inner query selects the groups of this page. The other columns are read only for these.
  return database.search(
    `SELECT g.fingerprint, latest.reason, latest.message, g.count, g.first_at, g.last_at,
       ARRAY(SELECT DISTINCT topic FROM {schema}.parked WHERE ${where} AND parked.fingerprint = g.fingerprint)
     FROM (SELECT fingerprint, count(*) AS count, min(parked_at) AS first_at, max(parked_at) AS last_at
       FROM {schema}.parked WHERE ${where} GROUP BY fingerprint
       HAVING ${after} IS NULL OR count(*) < ${after} OR (count(*) = ${after} AND fingerprint > ${afterName})
       ORDER BY count DESC, fingerprint LIMIT ${query.parameter(limit)}) AS g,
     LATERAL (SELECT reason, message FROM {schema}.parked WHERE ${where} AND parked.fingerprint = g.fingerprint
       ORDER BY parked_at DESC, id DESC LIMIT 1) AS latest
     ORDER BY g.count DESC, g.fingerprint`,
    query.values,
  );
}

/** Returns rows with a value, its count, and the count of all events. */
async function scanBreakdown(
  database: Database,
  filter: ParkedFilter,
  by: BreakdownBy,
  limit: number,
): Promise<readonly Row[]> {
  const query = parkedQuery(filter);
  const value =
    typeof by === 'object' ? `{schema}.header_of(extras, ${query.parameter(toHeaderText(by.header))})` : by;
  return database.search(
    `SELECT value, count(*) AS n, (sum(count(*)) OVER ())::bigint
     FROM (SELECT ${value} AS value FROM {schema}.parked WHERE ${query.where}) AS p
     GROUP BY value ORDER BY n DESC, value LIMIT ${query.parameter(limit)}`,
    query.values,
  );
}

function ruleEntry(
  what: 'rule_set' | 'rule_removed',
  name: string,
  act: Act,
  before: TriageRule | undefined,
): NewAuditEntry {
  return { ...act, what, subjects: [subject('rule', name)], before };
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
