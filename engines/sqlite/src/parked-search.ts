import type { SQLInputValue } from 'node:sqlite';
import type { ParkedFilter, ParkedGroup } from '@holdfast/contracts';
import { later } from 'holdfast';
import type { Store } from './store.ts';

type Row = Record<string, unknown>;

/** The position of a parked event in the list: the time at which it was parked, and its id. */
export type Place = readonly [parkedAt: number, id: string];

interface Where {
  readonly sql: string;
  readonly values: readonly SQLInputValue[];
}

/**
 * The number of rows that one statement reads. Between two statements the event loop can run other work: a million rows
 * are read in two hundred short steps.
 */
const readTogether = 5000;
const isAscii = /^\p{ASCII}*$/u;
const beginning: Place = [-Number.MAX_SAFE_INTEGER, ''];
const end: Place = [Number.MAX_SAFE_INTEGER, ''];

/** Finds parked events by a filter. It reads in short steps, however many events are parked. */
export class ParkedSearch {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
    // The built-in `lower` of SQLite converts only ASCII letters.
    const options = { deterministic: true };
    store.database.function('holdfast_lower', options, (text) => String(text).toLowerCase());
  }

  /** Returns at most `limit` events that were parked before the position `after`, the latest first. */
  async list(filter: ParkedFilter, columns: string, after: Place | undefined, limit: number): Promise<Row[]> {
    const found: Row[] = [];
    await this.#look(filter, after, (span) => {
      const sql = `SELECT ${columns} FROM holdfast_parked WHERE ${span.sql} ORDER BY parked_at DESC, id DESC LIMIT ? + 0`;
      found.push(...this.#store.prepare(sql).all(...span.values, limit - found.length));
      return found.length < limit;
    });
    return found;
  }

  async count(filter: ParkedFilter): Promise<number> {
    let count = 0;
    await this.#look(filter, undefined, (span) => {
      const sql = `SELECT count(*) AS count FROM holdfast_parked WHERE ${span.sql}`;
      count += Number(this.#store.prepare(sql).get(...span.values)?.count);
      return true;
    });
    return count;
  }

  /** Returns all groups of events with the same fingerprint, the largest first, without reason and message. */
  async groups(filter: ParkedFilter): Promise<Omit<ParkedGroup, 'reason' | 'message'>[]> {
    const groups = new Map<string, { count: number; firstAt: number; lastAt: number; topics: Set<string> }>();
    await this.#look(filter, undefined, (span) => {
      const sql = `
        SELECT fingerprint, count(*) AS count, min(parked_at) AS first_at, max(parked_at) AS last_at,
          json_group_array(DISTINCT topic) AS topics
        FROM holdfast_parked WHERE ${span.sql} GROUP BY fingerprint`;
      for (const row of this.#store.prepare(sql).all(...span.values)) {
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

  /**
   * Reads one step of the list, the earliest first. Returns up to `limit` matching rows, and `to`, the position at
   * which the next step starts; it is `undefined` after the last step. Call it within a transaction.
   */
  step(
    filter: ParkedFilter,
    after: Place | undefined,
    limit: number,
  ): { rows: Row[]; to: Place | undefined } {
    const start = after ?? beginning;
    const axis = axisOf(filter);
    const to = this.#boundary(axis, '>', start, '');
    const { sql, values } = both(axis, rest(filter), between(start, to ?? end));
    const found = this.#store.prepare(`
      SELECT number, parked_at, id FROM holdfast_parked WHERE ${sql} ORDER BY parked_at, id LIMIT ? + 0`);
    const rows = found.all(...values, limit);
    const last = rows.at(-1);
    return { rows, to: last && rows.length === limit ? [Number(last.parked_at), String(last.id)] : to };
  }

  /** Calls `look` with one part of the list after the other, the latest first, until `look` returns false. */
  async #look(filter: ParkedFilter, after: Place | undefined, look: (span: Where) => boolean): Promise<void> {
    const axis = axisOf(filter);
    const others = rest(filter);
    let start: Place | undefined = after ?? end;
    while (start) {
      const from: Place = start;
      const stop = filter.ids ? undefined : this.#store.look(() => this.#boundary(axis, '<', from, 'DESC'));
      const span = both(axis, others, {
        sql: '(parked_at, id) < (?, ?) AND (parked_at, id) >= (?, ?)',
        values: [...from, ...(stop ?? beginning)],
      });
      if (!this.#store.look(() => look(span))) return;
      start = stop;
      if (start) await new Promise<void>(later);
    }
  }

  /**
   * Returns the position at which a statement should stop, `readTogether` rows after `start`. Returns `undefined` if
   * fewer rows are left.
   */
  #boundary(axis: Where, beyond: '<' | '>', start: Place, direction: '' | 'DESC'): Place | undefined {
    const row = this.#store
      .prepare(`
        SELECT parked_at, id FROM holdfast_parked WHERE ${axis.sql} AND (parked_at, id) ${beyond} (?, ?)
        ORDER BY parked_at ${direction}, id ${direction} LIMIT 1 OFFSET ${readTogether - 1}`)
      .get(...axis.values, ...start);
    return row && [Number(row.parked_at), String(row.id)];
  }
}

/** The conditions that an index of `holdfast_parked` can answer. */
function axisOf({ status = 'parked', fingerprint, from, to }: ParkedFilter): Where {
  return all([
    ['status = ?', status],
    ['fingerprint = ?', fingerprint],
    ['parked_at >= ?', from],
    ['parked_at < ?', to],
  ]);
}

function rest(filter: ParkedFilter): Where {
  const { ids, isFree, text } = filter;
  const equal = all([
    ['topic = ?', filter.topic],
    ['type = ?', filter.type],
    ['key = ?', filter.key],
    ['tenant = ?', filter.tenant],
    ['operation = ?', filter.operation],
    ['reason = ?', filter.reason],
    ['stop = ?', filter.stop],
    ['id IN (SELECT value FROM json_each(?))', ids && JSON.stringify(ids)],
  ]);
  const free = isFree ? { sql: 'operation IS NULL', values: [] } : undefined;
  return both(equal, free, text === undefined ? undefined : containing(text.toLowerCase()));
}

function containing(text: string): Where {
  const lower = isAscii.test(text) ? 'lower' : 'holdfast_lower';
  const places = [
    'message',
    `coalesce(key, '')`,
    `CASE typeof(payload) WHEN 'text' THEN payload ELSE '' END`,
  ];
  return {
    sql: `(${places.map((place) => `instr(${lower}(${place}), ?)`).join(' OR ')})`,
    values: places.map(() => text),
  };
}

function between(after: Place, to: Place): Where {
  return { sql: '(parked_at, id) > (?, ?) AND (parked_at, id) <= (?, ?)', values: [...after, ...to] };
}

function all(conditions: readonly (readonly [sql: string, value: SQLInputValue | undefined])[]): Where {
  const given = conditions.filter(([, value]) => value !== undefined);
  return {
    sql: given.map(([sql]) => sql).join(' AND ') || 'true',
    values: given.map(([, value]) => value as SQLInputValue),
  };
}

function both(...wheres: readonly (Where | undefined)[]): Where {
  const given = wheres.filter((where): where is Where => where !== undefined);
  return { sql: given.map(({ sql }) => sql).join(' AND '), values: given.flatMap(({ values }) => values) };
}
