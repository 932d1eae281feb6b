import {
  type ParkedFilter,
  type ParkedGroup,
  type ParkedStatus,
  type Place,
  valuesOf,
} from '@holdfast/contracts';
import { all, oneOf, type Sql } from './parked-conditions.ts';
import type { Store } from './store.ts';

type Row = Record<string, unknown>;

/** Parked events with the same three values are counted together. */
export type CountedKind = readonly [status: string, fingerprint: string, topic: string];

/**
 * Stores how many parked events there are of each kind, so that counts need not read the events. Each change
 * of a status must call `move` or `add`.
 */
export class ParkedCounts {
  readonly #store: Store;
  readonly #add;
  readonly #removeEmpty;
  /** The changes of the current transaction, by kind. They are written once, before the commit. */
  readonly #changes = new Map<string, number>();

  constructor(store: Store) {
    this.#store = store;
    store.beforeCommit(() => this.#writeChanges());
    store.onRollback(() => this.#changes.clear());
    this.#add = store.prepare(`
      INSERT INTO holdfast_parked_count VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count`);
    this.#removeEmpty = store.prepare(`
      DELETE FROM holdfast_parked_count WHERE status = ? AND fingerprint = ? AND topic = ? AND count = 0`);
  }

  /** Adds `by` events of a kind. Call it within a transaction. */
  add(kind: CountedKind, by: number): void {
    const name = JSON.stringify(kind);
    this.#changes.set(name, (this.#changes.get(name) ?? 0) + by);
  }

  /** Counts rows (with `fingerprint` and `topic`) that got another status. Call it within a transaction. */
  move(rows: readonly Row[], from: ParkedStatus, to: ParkedStatus): void {
    for (const row of rows) {
      this.add([from, String(row.fingerprint), String(row.topic)], -1);
      this.add([to, String(row.fingerprint), String(row.topic)], 1);
    }
  }

  /**
   * Returns how many parked events match the filter, which may contain only status, fingerprint and topic.
   */
  count(filter: ParkedFilter): number {
    return Number(this.#all('total(count) AS count', filter)[0]?.count);
  }

  groups(filter: ParkedFilter, [count, fingerprint]: Place, limit: number): ParkedGroup[] {
    const rows = this.#all('fingerprint, sum(count) AS count', filter, {
      sql: `
        GROUP BY fingerprint HAVING sum(count) < ? OR (sum(count) = ? AND fingerprint > ?)
        ORDER BY sum(count) DESC, fingerprint LIMIT ? + 0`,
      values: [count, count, fingerprint, limit],
    });
    const fingerprints = rows.map((row) => String(row.fingerprint));
    const kinds = Map.groupBy(this.#details({ ...filter, fingerprint: fingerprints }), (row) =>
      String(row.fingerprint),
    );
    return rows.map((row) => toGroup(kinds.get(String(row.fingerprint))!, Number(row.count)));
  }

  breakdown(filter: ParkedFilter, column: 'status' | 'fingerprint' | 'topic'): Map<string, number> {
    const rows = this.#all(`${column} AS value, sum(count) AS count`, filter, {
      sql: `GROUP BY ${column}`,
      values: [],
    });
    return new Map(rows.map(({ value, count }) => [String(value), Number(count)]));
  }

  /** Returns the kinds that match the filter; `undefined`: there are more than `max`. */
  kinds(filter: ParkedFilter, max: number): CountedKind[] | undefined {
    const rows = this.#all('status, fingerprint, topic', filter, { sql: 'LIMIT ? + 0', values: [max + 1] });
    return rows.length > max
      ? undefined
      : rows.map((row) => [String(row.status), String(row.fingerprint), String(row.topic)]);
  }

  #details(filter: ParkedFilter): Row[] {
    const ofKind = `holdfast_parked parked
      WHERE parked.status = kind.status AND parked.fingerprint = kind.fingerprint AND parked.topic = kind.topic`;
    const { sql, values } = conditionsOf(filter, 'kind.');
    return this.#store
      .prepare(`
        SELECT latest.fingerprint, latest.topic, latest.parked_at, latest.reason, latest.message,
          (SELECT parked_at FROM ${ofKind} ORDER BY parked_at LIMIT 1) AS first_at
        FROM holdfast_parked_count kind CROSS JOIN holdfast_parked latest ON latest.number = (
          SELECT number FROM ${ofKind} ORDER BY parked_at DESC, id DESC LIMIT 1)
        WHERE ${sql} ORDER BY latest.parked_at DESC, latest.id DESC`)
      .all(...values);
  }

  #writeChanges(): void {
    for (const [name, by] of this.#changes) {
      if (by === 0) continue;
      const kind = JSON.parse(name) as CountedKind;
      this.#add.run(...kind, by);
      if (by < 0) this.#removeEmpty.run(...kind);
    }
    this.#changes.clear();
  }

  #all(columns: string, filter: ParkedFilter, end: Sql = { sql: '', values: [] }): Row[] {
    this.#writeChanges();
    const { sql, values } = conditionsOf(filter);
    return this.#store
      .prepare(`SELECT ${columns} FROM holdfast_parked_count WHERE ${sql} ${end.sql}`)
      .all(...values, ...end.values);
  }
}

function conditionsOf({ status = 'parked', fingerprint, topic }: ParkedFilter, table = ''): Sql {
  return all([
    oneOf(`${table}status`, valuesOf(status)),
    ...(fingerprint === undefined ? [] : [oneOf(`${table}fingerprint`, valuesOf(fingerprint))]),
    ...(topic === undefined ? [] : [oneOf(`${table}topic`, valuesOf(topic))]),
  ]);
}

/**
 * Builds the group of one fingerprint. All `kinds` have this fingerprint, and the kind with the latest event
 * comes first.
 */
function toGroup(kinds: readonly Row[], count: number): ParkedGroup {
  const { fingerprint, reason, message, parked_at } = kinds[0]!;
  return {
    fingerprint: String(fingerprint),
    reason: String(reason),
    message: String(message),
    count,
    firstAt: Math.min(...kinds.map(({ first_at }) => Number(first_at))),
    lastAt: Number(parked_at),
    topics: [...new Set(kinds.map(({ topic }) => String(topic)))],
  };
}
