import {
  type BreakdownBy,
  filterIsCounted,
  type OneOf,
  type ParkedFilter,
  valuesOf,
} from '@holdfast/contracts';
import type { Database, Row } from './database.ts';

const countedRows = `(SELECT status, topic, fingerprint, count FROM {schema}.parked_count
    UNION ALL SELECT status, topic, fingerprint, count FROM {schema}.parked_count_delta) AS c
  WHERE status = ANY ($1) AND ($2::text[] IS NULL OR topic = ANY ($2)) AND ($3::text[] IS NULL OR fingerprint = ANY ($3))`;
const countText = 'SELECT {schema}.count_parked($1, $2, $3)';
const groupsText = `SELECT fingerprint, reason, message, count, first_at, last_at, all_topics
  FROM {schema}.parked_groups($1, $2, $3, $4, $5, $6)`;
const foldText = 'SELECT {schema}.fold_parked_counts($1)';

const foldMax = 10_000;
const roundsMax = 100;
/** Vacuum the table after this many rows of changes were deleted. */
const deadMax = 1000;
/** Add the changes to the stored counts after this many, without waiting for a query or for a sweep. */
const changesMax = 1000;
/** After a query, the changes of other processes are added to the stored counts, but at most once in this many ms. */
const foldEveryMs = 1000;

/** Answers from stored counts, so the time of a query does not depend on the number of parked events. */
export class ParkedCounts {
  readonly #database: Database;
  #foldedAt = -Infinity;
  #dead = 0;
  #changes = 0;
  #folding: Promise<void> | undefined;
  #isClosed = false;

  constructor(database: Database) {
    this.#database = database;
  }

  async count(filter: ParkedFilter): Promise<number> {
    const [row] = await this.#rows(countText, valuesFor(filter));
    return row![0] as number;
  }

  /** Returns rows with fingerprint, reason, message, count, first time, last time and topics. */
  groups(
    filter: ParkedFilter,
    afterCount: number | null,
    afterFingerprint: string | null,
    limit: number,
  ): Promise<readonly Row[]> {
    return this.#rows(groupsText, [...valuesFor(filter), afterCount, afterFingerprint, limit]);
  }

  /** Returns rows with a value, its count, and the count of all events. */
  breakdown(filter: ParkedFilter, by: CountedProperty, limit: number): Promise<readonly Row[]> {
    const text = `SELECT ${by}, sum(count)::bigint AS n, (sum(sum(count)) OVER ())::bigint FROM ${countedRows}
      GROUP BY ${by} HAVING sum(count) > 0 ORDER BY n DESC, ${by} LIMIT $4`;
    return this.#rows(text, [...valuesFor(filter), limit]);
  }

  /** Tells that events were parked. If they are many, their changes are added to the stored counts in the background. */
  changed(count: number): void {
    this.#changes += count;
    if (this.#changes >= changesMax) this.#foldSoon();
  }

  /** Ends the work in the background. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#folding;
  }

  /** Adds the latest changes to the stored counts, so that queries read few rows. */
  async fold(): Promise<void> {
    for (let rounds = 0; rounds < roundsMax && !this.#isClosed; rounds++) {
      const folded = await this.#foldSome();
      this.#dead += folded;
      if (folded < foldMax) break;
    }
    if (this.#dead < deadMax || this.#isClosed) return;
    this.#dead = 0;
    // A query also reads deleted rows, and autovacuum runs only once a minute. To truncate the table would wait for
    // those who park events.
    await this.#database.search(
      'VACUUM (TRUNCATE false) {schema}.parked_count_delta, {schema}.parked_count',
      [],
    );
  }

  async #foldSome(): Promise<number> {
    const [row] = await this.#database.rows(foldText, [foldMax]);
    return row![0] as number;
  }

  async #rows(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    const rows = await this.#database.rows(text, values);
    const now = this.#database.clock.now();
    if (now - this.#foldedAt >= foldEveryMs) {
      this.#foldedAt = now;
      this.#foldSoon();
    }
    return rows;
  }

  /** Adds the changes in the background. */
  #foldSoon(): void {
    if (this.#folding) return;
    this.#changes = 0;
    // After an error, the changes are still there for the next sweep, which reports its errors.
    this.#folding = this.fold()
      .catch(() => undefined)
      .finally(() => {
        this.#folding = undefined;
      });
  }
}

export type CountedProperty = 'topic' | 'status' | 'fingerprint';

/** Returns `by` if the stored counts can answer a breakdown by this property. */
export function countedProperty(filter: ParkedFilter, by: BreakdownBy): CountedProperty | undefined {
  const isCounted = by === 'topic' || by === 'status' || by === 'fingerprint';
  return isCounted && filterIsCounted(filter) ? by : undefined;
}

function valuesFor({ status = 'parked', topic, fingerprint }: ParkedFilter): unknown[] {
  return [valuesOf(status), listOf(topic), listOf(fingerprint)];
}

function listOf(wanted: OneOf | undefined): readonly string[] | null {
  return wanted === undefined ? null : valuesOf(wanted);
}
