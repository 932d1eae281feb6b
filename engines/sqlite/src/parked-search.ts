import type { SQLInputValue, StatementSync } from 'node:sqlite';
import {
  type BreakdownBy,
  bucketsMax,
  type HistogramBucket,
  type ParkedFilter,
  type ParkedGroup,
  type Place,
  valuesOf,
} from '@holdfast/contracts';
import { later } from 'holdfast';
import { all, conditionsOf, headerSql, oneOf, type Sql } from './parked-conditions.ts';
import type { ParkedCounts } from './parked-counts.ts';
import type { Store } from './store.ts';

type Row = Record<string, unknown>;

/** Events that one index returns in the order of parking. */
interface Range extends Sql {
  readonly index: string;
}

export interface Found {
  readonly rows: Row[];
  /** Where the search stopped because of `lookMax`, and how many events it had read. */
  readonly stopped: { readonly at: Place; readonly looked: number } | undefined;
}

/** How many rows one statement reads. The event loop runs other work between two statements. */
const readTogether = 5000;
/** If a search needs more ranges than this, it reads all events of the status instead. */
const rangesMax = 40;
/**
 * The most compiled statements that are kept. The texts of statements depend on the filters, so there can be
 * very many.
 */
const statementsMax = 100;

const beginning: Place = [-Number.MAX_SAFE_INTEGER, ''];
const end: Place = [Number.MAX_SAFE_INTEGER, ''];

export class ParkedSearch {
  readonly #store: Store;
  readonly #counts: ParkedCounts;
  readonly #statements = new Map<string, StatementSync>();

  constructor(store: Store, counts: ParkedCounts) {
    this.#store = store;
    this.#counts = counts;
    // SQLite's own `lower` converts only ASCII letters.
    const options = { deterministic: true };
    store.database.function('holdfast_lower', options, (text) => String(text).toLowerCase());
  }

  /**
   * Returns at most `limit` events that were parked before `after`, the latest first. Reads about `lookMax`
   * events at most. `columns` must contain `parked_at` and `id`.
   */
  async list(
    filter: ParkedFilter,
    columns: string,
    after: Place | undefined,
    limit: number,
    lookMax = Infinity,
  ): Promise<Found> {
    const rows: Row[] = [];
    const stopped = await this.#walk(filter, after, lookMax, (from) => {
      const { sql, values } = from({ sql: columns, values: [] });
      const page = `${sql} ORDER BY parked_at DESC, id DESC LIMIT ? + 0`;
      rows.push(...this.#all(page, [...values, limit - rows.length]));
      return rows.length < limit;
    });
    return { rows, stopped };
  }

  async count(filter: ParkedFilter): Promise<number> {
    let count = 0;
    await this.#walk(filter, undefined, Infinity, (from) => {
      const { sql, values } = from({ sql: '1', values: [] });
      count += Number(this.#all(`SELECT count(*) AS count FROM (${sql})`, values)[0]?.count);
      return true;
    });
    return count;
  }

  async groups(filter: ParkedFilter): Promise<Omit<ParkedGroup, 'reason' | 'message'>[]> {
    const groups = new Map<string, { count: number; firstAt: number; lastAt: number; topics: Set<string> }>();
    await this.#walk(filter, undefined, Infinity, (from) => {
      const { sql, values } = from({ sql: 'fingerprint, parked_at, topic', values: [] });
      const grouped = `
        SELECT fingerprint, count(*) AS count, min(parked_at) AS first_at, max(parked_at) AS last_at,
          json_group_array(DISTINCT topic) AS topics
        FROM (${sql}) GROUP BY fingerprint`;
      for (const row of this.#all(grouped, values)) {
        const fingerprint = String(row.fingerprint);
        const lastAt = Number(row.last_at);
        const group = groups.get(fingerprint) ?? { count: 0, firstAt: 0, lastAt, topics: new Set() };
        group.count += Number(row.count);
        group.firstAt = Number(row.first_at);
        for (const topic of JSON.parse(String(row.topics))) group.topics.add(topic);
        groups.set(fingerprint, group);
      }
      return true;
    });
    return [...groups]
      .map(([fingerprint, group]) => ({ fingerprint, ...group, topics: [...group.topics] }))
      .sort((a, b) => b.count - a.count || (a.fingerprint < b.fingerprint ? -1 : 1));
  }

  async breakdown(filter: ParkedFilter, by: BreakdownBy): Promise<Map<string | undefined, number>> {
    const counts = new Map<string | undefined, number>();
    const value: Sql =
      typeof by === 'string'
        ? { sql: `${by} AS value`, values: [] }
        : { sql: `${headerSql} AS value`, values: [by.header] };
    await this.#walk(filter, undefined, Infinity, (from) => {
      const { sql, values } = from(value);
      for (const row of this.#all(`SELECT value, count(*) AS count FROM (${sql}) GROUP BY value`, values)) {
        const found = (row.value as string | null) ?? undefined;
        counts.set(found, (counts.get(found) ?? 0) + Number(row.count));
      }
      return true;
    });
    return counts;
  }

  async histogram(filter: ParkedFilter, bucketMs: number): Promise<HistogramBucket[]> {
    const buckets = new Map<number, number>();
    await this.#walk(filter, undefined, Infinity, (from) => {
      const { sql, values } = from({ sql: 'parked_at - parked_at % ? AS at', values: [bucketMs] });
      for (const row of this.#all(`SELECT at, count(*) AS count FROM (${sql}) GROUP BY at`, values)) {
        const bucket = Number(row.at);
        buckets.set(bucket, (buckets.get(bucket) ?? 0) + Number(row.count));
      }
      // The last bucket may continue in the next part, so read one bucket more.
      return buckets.size <= bucketsMax;
    });
    return [...buckets]
      .map(([at, count]) => ({ at, count }))
      .sort((a, b) => a.at - b.at)
      .slice(-bucketsMax);
  }

  /**
   * Reads one part of the list, the earliest first. The next part starts at `to`; `undefined`: this was the
   * last. Call it within a transaction.
   */
  step(
    filter: ParkedFilter,
    after: Place | undefined,
    limit: number,
  ): { rows: Row[]; to: Place | undefined } {
    const ranges = this.#rangesOf(filter);
    if (ranges.length === 0) return { rows: [], to: undefined };
    const [lowest, highest] = limitsOf(filter);
    const start = after && isBefore(lowest, after) ? after : lowest;
    const to = filter.ids
      ? undefined
      : this.#boundary(ranges, upwards(start, '<', highest), '', readTogether);
    const part = to ? upwards(start, '<=', to) : upwards(start, '<', highest);
    const { sql, values } = union(ranges, place, all([part, conditionsOf(filter)]));
    const rows = this.#all(`${sql} ORDER BY parked_at, id LIMIT ? + 0`, [...values, limit]);
    const last = rows.at(-1);
    return { rows, to: last && rows.length === limit ? [Number(last.parked_at), String(last.id)] : to };
  }

  /**
   * Splits the events into parts, the latest first. `visit` gets a function that makes the SQL for a part,
   * and returns false to stop.
   */
  async #walk(
    filter: ParkedFilter,
    after: Place | undefined,
    lookMax: number,
    visit: (from: (columns: Sql) => Sql) => boolean,
  ): Promise<Found['stopped']> {
    const conditions = conditionsOf(filter);
    const [lowest, highest] = limitsOf(filter);
    let start = after && isBefore(after, highest) ? after : highest;
    for (let looked = 0; ; ) {
      const count = Math.min(readTogether, lookMax - looked);
      const { stop, goesOn } = this.#store.read(() => {
        const ranges = this.#rangesOf(filter);
        if (ranges.length === 0) return { stop: undefined, goesOn: false };
        const stop = filter.ids ? undefined : this.#boundary(ranges, downwards(start, lowest), 'DESC', count);
        const part = all([downwards(start, stop ?? lowest), conditions]);
        return { stop, goesOn: visit((columns) => union(ranges, columns, part)) };
      });
      if (!stop || !goesOn) return undefined;
      looked += count;
      if (looked >= lookMax) return { at: stop, looked };
      start = stop;
      await new Promise<void>(later);
    }
  }

  /** Returns the position of the row number `count`, or `undefined` if no row follows it. */
  #boundary(ranges: readonly Range[], unread: Sql, direction: '' | 'DESC', count: number): Place | undefined {
    const { sql, values } = union(ranges, place, unread);
    const rows = this.#all(`${sql} ORDER BY parked_at ${direction}, id ${direction} LIMIT 2 OFFSET ? + 0`, [
      ...values,
      count - 1,
    ]);
    return rows.length < 2 ? undefined : [Number(rows[0]!.parked_at), String(rows[0]!.id)];
  }

  /** Returns the smallest ranges that contain all matching events. */
  #rangesOf(filter: ParkedFilter): Range[] {
    const { status = 'parked', ids, operation, replayedBy, topic, fingerprint } = filter;
    const statuses = [...new Set(valuesOf(status))];
    if (ids) {
      const { sql, values } = all([oneOf('id', ids), oneOf('status', statuses)]);
      return [{ index: 'sqlite_autoindex_holdfast_parked_1', sql, values }];
    }
    const perStatus = (index: string, sql = 'true', ...before: SQLInputValue[]) =>
      statuses.map((each) => ({ index, sql: `${sql} AND status = ?`, values: [...before, each] }));
    if (operation !== undefined) return perStatus('holdfast_parked_operation', 'operation = ?', operation);
    if (replayedBy !== undefined)
      return perStatus('holdfast_parked_replayed_by', 'replayed_by = ?', replayedBy);
    const kinds =
      topic === undefined && fingerprint === undefined ? undefined : this.#counts.kinds(filter, rangesMax);
    if (!kinds) return perStatus('holdfast_parked_list');
    return kinds.map((kind) => {
      return {
        index: 'holdfast_parked_group',
        sql: 'status = ? AND fingerprint = ? AND topic = ?',
        values: kind,
      };
    });
  }

  #all(sql: string, values: readonly SQLInputValue[]): Row[] {
    const known = this.#statements.get(sql);
    const statement = known ?? this.#store.database.prepare(sql);
    // A Map keeps the order of insertion, so the first statement was not used for the longest time.
    this.#statements.delete(sql);
    this.#statements.set(sql, statement);
    if (this.#statements.size > statementsMax) this.#statements.delete(this.#statements.keys().next().value!);
    return statement.all(...values);
  }
}

const place: Sql = { sql: 'number, parked_at, id', values: [] };

/**
 * Returns SQL that reads all ranges. With ORDER BY and LIMIT, SQLite reads the ranges in turns, and stops
 * when it has enough rows.
 */
function union(ranges: readonly Range[], columns: Sql, condition: Sql): Sql {
  const parts = ranges.map(({ index, sql, values }) => ({
    sql: `SELECT ${columns.sql} FROM holdfast_parked INDEXED BY ${index} WHERE ${sql} AND ${condition.sql}`,
    values: [...columns.values, ...values, ...condition.values],
  }));
  return {
    sql: parts.map(({ sql }) => sql).join(' UNION ALL '),
    values: parts.flatMap(({ values }) => values),
  };
}

// SQLite uses only one lower and one upper bound of an index, so there must not be more.
function downwards(start: Place, to: Place): Sql {
  return { sql: '(parked_at, id) < (?, ?) AND (parked_at, id) >= (?, ?)', values: [...start, ...to] };
}

function upwards(start: Place, below: '<' | '<=', to: Place): Sql {
  return { sql: `(parked_at, id) > (?, ?) AND (parked_at, id) ${below} (?, ?)`, values: [...start, ...to] };
}

/** Returns the lowest and the highest position that a matching event can have. */
function limitsOf({ from, to }: ParkedFilter): [lowest: Place, highest: Place] {
  return [from === undefined ? beginning : [from, ''], to === undefined ? end : [to, '']];
}

function isBefore([parkedAt, id]: Place, [otherAt, otherId]: Place): boolean {
  return parkedAt < otherAt || (parkedAt === otherAt && id < otherId);
}
