import {
  assertTopic,
  type Broker,
  clampMs,
  type Lease,
  numberIn,
  type Page,
  type SettledEvent,
  type SizeLimits,
  TopicError,
  type TopicSettings,
  type Waiting,
  type WaitingState,
} from '@holdfast/contracts';
import { postgresControls } from './controls.ts';
import type { Database, PostgresTransaction, Row } from './database.ts';
import type { Doorbell } from './doorbell.ts';
import { envelopeColumns, envelopeOf, jsonOf, numberOf, textOf } from './envelope-columns.ts';
import { groupLeases } from './lease-groups.ts';
import { leasedOf, leaseText, leaseValues } from './lease-rows.ts';
import { isUnanswered, toPostgresError } from './postgres-errors.ts';
import { publicationOf, publishedOf, publishText } from './publish.ts';
import { ScanStart } from './scan-start.ts';
import { settle, valuesOf } from './settle.ts';

export interface BrokerParts {
  readonly database: Database;
  readonly doorbell: Doorbell;
  readonly channel: string;
  readonly limits: SizeLimits;
  readonly keepParkedMs: number;
  newId(): string;
}

const declareText = `INSERT INTO {schema}.topic AS t (name, ordering, keep_settled_ms)
  VALUES ($1, coalesce($2, 'none'), ceil(coalesce($3::double precision, 0))::bigint)
  ON CONFLICT (name) DO UPDATE SET ordering = coalesce($2, t.ordering),
    keep_settled_ms = coalesce(ceil($3::double precision)::bigint, t.keep_settled_ms)
  WHERE coalesce($2, t.ordering) = t.ordering OR NOT EXISTS (SELECT FROM {schema}.event e WHERE e.topic = t.topic)
  RETURNING ordering, keep_settled_ms`;
const historyText = `SELECT seq, how, settled_at, ${envelopeColumns} FROM {schema}.settled
  WHERE topic = ({schema}.topic_of($1)).topic AND seq > $2 AND removed_at > {schema}.now_ms()
    AND first_seen_at >= coalesce($3, first_seen_at) AND first_seen_at < coalesce($4, first_seen_at + 1)
  ORDER BY seq LIMIT $5`;

/** Stores events in PostgreSQL. Most methods are one call of an SQL function, and so one transaction. */
export function postgresBroker(parts: BrokerParts): Broker<PostgresTransaction> {
  const { database, doorbell, limits, keepParkedMs, newId } = parts;
  const scanStarts = new ScanStart(database.clock);

  function wake(topic: string, isAsleep: boolean): void {
    doorbell.ring(topic);
    if (isAsleep) doorbell.notify(topic);
  }

  return {
    limits,
    controls: postgresControls(database, (topic) => wake(topic, true)),

    async declare(name, settings = {}): Promise<TopicSettings> {
      assertTopic(name, settings);
      const { ordering, keepSettledMs } = settings;
      const keepMs = keepSettledMs === undefined ? null : clampMs(keepSettledMs);
      const [row] = await database.rows(declareText, [name, ordering ?? null, keepMs]);
      if (row) return { ordering: row[0] as TopicSettings['ordering'], keepSettledMs: row[1] as number };
      throw new TopicError(name, `is ordered by ${ordering === 'key' ? 'none' : 'key'}, and holds events`);
    },

    async topics() {
      const rows = await database.rows('SELECT name FROM {schema}.topic ORDER BY topic');
      return rows.map(([name]) => name as string);
    },

    async publish(topic, events) {
      const publication = publicationOf(topic, events, limits, newId);
      const rows = await database.rows(publishText, publication.values);
      wake(topic, rows[0]![1] === true);
      return publishedOf(publication, rows);
    },

    async publishWithin(tx, topic, events) {
      const publication = publicationOf(topic, events, limits, newId);
      const rows = await database.rowsWithin(tx, publishText, publication.values).catch((error) => {
        // If the connection does not answer, the caller gets the error of the driver.
        throw isUnanswered(error) ? error : toPostgresError(error);
      });
      // PostgreSQL sends the notification when the transaction commits. This process receives it, too.
      if (rows[0]![1] === true) await tx.query('SELECT pg_notify($1, $2)', [parts.channel, topic]);
      return publishedOf(publication, rows);
    },

    async lease(topic, request) {
      const scanStart = scanStarts.of(topic);
      const values = leaseValues(topic, request, scanStart);
      const { firstDueAt, ...leased } = leasedOf(topic, await database.rows(leaseText, values));
      const isFull = leased.deliveries.length >= request.limit && request.suspects !== true;
      scanStarts.record(topic, scanStart, isFull ? firstDueAt : null);
      return leased;
    },

    settle: (batch) => settle(database, batch, { keepParkedMs, wake }),

    async extend(leases, leaseMs) {
      const extended = new Set<Lease['token']>();
      for (const [topic, some] of Map.groupBy(leases, (lease) => lease.topic)) {
        for (const token of await extendOf(topic, some, leaseMs)) extended.add(token);
      }
      return leases.map(({ token }) => extended.has(token));
    },

    async counts(topic) {
      const [row] = await database.rows(
        `SELECT ready, delayed, behind, held, leased, suspect, blocking, oldest_ready_ms, next_due_in_ms
         FROM {schema}.counts($1)`,
        [topic],
      );
      const [ready, delayed, behind, held, leased, suspect, blocking, oldestReadyMs, nextDueInMs] =
        row as number[];
      return {
        ...{ ready, delayed, behind, held, leased, suspect, blocking },
        oldestReadyMs,
        nextDueInMs: numberOf(nextDueInMs),
      } as Awaited<ReturnType<Broker['counts']>>;
    },

    async waiting(topic, { limit, cursor = '0' }) {
      const rows = await database.rows('SELECT * FROM {schema}.waiting($1, $2, $3)', [
        topic,
        numberIn(cursor),
        limit + 1,
      ]);
      return pageOf(rows, limit, waitingOf);
    },

    async retryNow(topic, ids) {
      const [row] = await database.rows('SELECT {schema}.retry_now($1, $2)', [topic, ids]);
      wake(topic, true);
      return among(ids, row);
    },

    async unblock(topic, ids) {
      const [row] = await database.rows('SELECT {schema}.unblock($1, $2)', [topic, ids]);
      wake(topic, true);
      return among(ids, row);
    },

    doorbell: (topic, ring) => doorbell.listen(topic, ring),

    async history(topic, { from, to, limit, cursor = '0' }) {
      const values = [
        topic,
        numberIn(cursor),
        from === undefined ? null : Math.ceil(clampMs(from)),
        to === undefined ? null : Math.ceil(clampMs(to)),
      ];
      const rows = await database.rows(historyText, [...values, limit + 1]);
      return pageOf(rows, limit, (row) => settledOf(topic, row));
    },
  };

  /** Extends leases of one topic, and returns the tokens of those that were still valid. */
  async function extendOf(topic: string, leases: readonly Lease[], leaseMs: number): Promise<string[]> {
    const groups = groupLeases(leases);
    if (groups.seqs.length === 0) return [];
    const values = [...valuesOf(topic, groups), clampMs(leaseMs)];
    try {
      const [row] = await database.rows('SELECT {schema}.extend($1, $2, $3, $4, $5)', values);
      const isGood = row![0] as boolean[];
      return groups.places.filter((_, index) => isGood[index]).map((place) => leases[place]!.token);
    } catch (error) {
      // A topic that does not exist has no leases.
      if (error instanceof TopicError) return [];
      throw error;
    }
  }
}

/**
 * Makes a page from `rows`, whose first column is the cursor. `rows` has one row more than `limit` if there is another
 * page.
 */
function pageOf<T>(rows: readonly Row[], limit: number, read: (row: Row) => T): Page<T> {
  const shown = rows.slice(0, limit);
  return { items: shown.map(read), cursor: rows.length > limit ? String(shown.at(-1)?.[0]) : undefined };
}

function among(ids: readonly string[], row: Row | undefined): boolean[] {
  const found = new Set(row?.[0] as string[]);
  // If an id occurs twice in `ids`, only its first result is true.
  return ids.map((id) => found.delete(id));
}

function waitingOf(row: Row): Waiting {
  return {
    id: row[1] as string,
    type: textOf(row[2]),
    key: textOf(row[3]),
    tenant: textOf(row[4]),
    firstSeenAt: row[5] as number,
    attempts: row[6] as number,
    snoozes: row[7] as number,
    deaths: row[8] as number,
    nextDelayMs: numberOf(row[9]),
    lastError: jsonOf(row[10]),
    story: jsonOf<Waiting['story']>(row[11]) ?? [],
    state: row[12] as WaitingState,
    dueAt: row[13] as number,
    owner: textOf(row[14]),
  };
}

function settledOf(topic: string, row: Row): SettledEvent {
  return { ...envelopeOf(row, topic, 3), how: row[1] as SettledEvent['how'], settledAt: row[2] as number };
}
