import {
  type Act,
  assertBounds,
  assertOrderingChange,
  assertReason,
  assertTopic,
  assertWaitingQuestion,
  type Broker,
  clampMs,
  type Lease,
  numberIn,
  type Page,
  placeIn,
  type SettledEvent,
  type SizeLimits,
  subject,
  type TopicCounts,
  TopicError,
  type TopicSettings,
  type Waiting,
  type WaitingState,
} from '@holdfast/contracts';
import { assertMayUndo, type WriteAudit } from './audit.ts';
import { postgresControls } from './controls.ts';
import type { Database, PostgresTransaction, Row } from './database.ts';
import type { Doorbell } from './doorbell.ts';
import { envelopeColumns, envelopeOf, jsonOf, numberOf, textOf } from './envelope-columns.ts';
import { groupLeases } from './lease-groups.ts';
import { leasedOf, leaseText, leaseValues } from './lease-rows.ts';
import type { ParkedCounts } from './parked-counts.ts';
import { isUnanswered, toPostgresError } from './postgres-errors.ts';
import { publicationOf, publishBehindText, publishedOf, publishMovedText, publishText } from './publish.ts';
import { RecentCounts } from './recent-counts.ts';
import { ScanStart } from './scan-start.ts';
import { settle, valuesOf } from './settle.ts';

export interface BrokerParts {
  readonly database: Database;
  readonly doorbell: Doorbell;
  readonly channel: string;
  readonly limits: SizeLimits;
  readonly keepParkedMs: number;
  readonly writeAudit: WriteAudit;
  readonly parkedCounts: ParkedCounts;
  newId(): string;
}

const declareText = `INSERT INTO {schema}.topic AS t (name, ordering, keep_settled_ms)
  VALUES ($1, coalesce($2, 'none'), ceil(coalesce($3::double precision, 0))::bigint)
  ON CONFLICT (name) DO UPDATE SET ordering = coalesce($2, t.ordering),
    keep_settled_ms = coalesce(ceil($3::double precision)::bigint, t.keep_settled_ms)
  WHERE coalesce($2, t.ordering) = t.ordering
    OR t.ordering = 'none' AND NOT EXISTS (SELECT FROM {schema}.event e WHERE e.topic = t.topic)
  RETURNING ordering, keep_settled_ms`;
const historyText = `SELECT seq, how, settled_at, ${envelopeColumns} FROM {schema}.settled
  WHERE topic = ({schema}.topic_of($1)).topic AND seq > $2 AND removed_at > {schema}.now_ms()
    AND first_seen_at >= coalesce($3, first_seen_at) AND first_seen_at < coalesce($4, first_seen_at + 1)
  ORDER BY seq LIMIT $5`;

const countsText = `SELECT ready, delayed, behind, held, leased, suspect, blocking, oldest_ready_ms, next_due_in_ms, as_of
  FROM {schema}.counts($1)`;
const waitingText = 'SELECT * FROM {schema}.waiting($1, $2, $3, $4, $5, $6, $7, $8)';

/** Stores events in PostgreSQL. Most methods call one SQL function, which is one transaction. */
export function postgresBroker(parts: BrokerParts): Broker<PostgresTransaction> {
  const { database, doorbell, limits, keepParkedMs, writeAudit, parkedCounts, newId } = parts;
  const scanStarts = new ScanStart(database.clock);
  const recentCounts = new RecentCounts(database.clock);

  function wake(topic: string, isAsleep: boolean): void {
    doorbell.ring(topic);
    if (isAsleep) doorbell.notify(topic);
  }

  return {
    limits,
    controls: postgresControls(database, writeAudit, (topic) => wake(topic, true)),

    async declare(name, settings = {}): Promise<TopicSettings> {
      assertTopic(name, settings);
      const { ordering, keepSettledMs } = settings;
      const keepMs = keepSettledMs === undefined ? null : clampMs(keepSettledMs);
      const [row] = await database.rows(declareText, [name, ordering ?? null, keepMs]);
      // There is no row if the topic has the other ordering, and must keep it.
      if (!row) assertOrderingChange(name, ordering === 'key' ? 'none' : 'key', ordering!, true);
      return { ordering: row![0] as TopicSettings['ordering'], keepSettledMs: row![1] as number };
    },

    async topics() {
      const rows = await database.rows('SELECT name FROM {schema}.topic ORDER BY topic');
      return rows.map(([name]) => name as string);
    },

    async publish(topic, events) {
      const publication = publicationOf(topic, events, limits, newId);
      const { values, moved } = publication;
      const rows = moved
        ? await database.rows(publishMovedText, [...values, moved])
        : await database.rows(publishText, values);
      wake(topic, rows[0]![1] === true);
      return publishedOf(publication, rows);
    },

    async publishBehind(topic, events) {
      const { values, moved } = publicationOf(topic, events, limits, newId);
      const [row] = await database.rows(publishBehindText, [...values, moved]);
      const behind = (row![0] as boolean[] | null) ?? [];
      if (behind.includes(true)) wake(topic, row![1] === true);
      return behind;
    },

    async publishWithin(tx, topic, events) {
      const publication = publicationOf(topic, events, limits, newId);
      const { values, moved } = publication;
      const [text, given] = moved ? [publishMovedText, [...values, moved]] : [publishText, values];
      const rows = await database.rowsWithin(tx, text, given).catch((error) => {
        // If the connection does not answer, the caller gets the driver's own error.
        throw isUnanswered(error) ? error : toPostgresError(error);
      });
      // PostgreSQL sends the notification when the transaction commits.
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

    async settle(batch) {
      const settled = await settle(database, batch, { keepParkedMs, wake });
      parkedCounts.changed(batch.reduce((parked, { kind }) => parked + (kind === 'park' ? 1 : 0), 0));
      return settled;
    },

    async extend(leases, leaseMs) {
      const extended = new Set<Lease['token']>();
      for (const [topic, some] of Map.groupBy(leases, (lease) => lease.topic)) {
        for (const token of await extendOf(topic, some, leaseMs)) extended.add(token);
      }
      return leases.map(({ token }) => extended.has(token));
    },

    counts: (topic) => recentCounts.of(topic, () => countsOf(topic)),

    async waiting(topic, { limit, cursor }, question = {}) {
      assertWaitingQuestion(question);
      const { state, key = null, tenant = null, order } = question;
      const isByDue = order === 'due';
      const [dueAt, seq] = isByDue ? duePlaceIn(cursor) : [0, numberIn(cursor ?? '0')];
      const states = typeof state === 'string' ? [state] : (state ?? null);
      const rows = await database.rows(waitingText, [
        topic,
        states,
        key,
        tenant,
        isByDue,
        dueAt,
        seq,
        limit + 1,
      ]);
      const { items, cursor: last } = pageOf(rows, limit, waitingOf);
      return {
        items,
        cursor: isByDue && last !== undefined ? JSON.stringify([items.at(-1)?.dueAt, last]) : last,
      };
    },

    async due(topic, bounds) {
      assertBounds(bounds);
      const [row] = await database.rows('SELECT {schema}.due($1, $2)', [topic, bounds]);
      return (row![0] as unknown[]).map(Number);
    },

    retryNow: (topic, ids, act) => changeWaiting('retry_now', topic, ids, act),
    unblock: (topic, ids, act) => changeWaiting('unblock', topic, ids, act),

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

  async function countsOf(topic: string): Promise<TopicCounts> {
    const [row] = await database.rows(countsText, [topic]);
    const [ready, delayed, behind, held, leased, suspect, blocking, oldestReadyMs, nextDueInMs, asOf] =
      row as [number, number, number, number, number, number, number, number, number | null, number];
    return {
      ...{ ready, delayed, behind, held, leased, suspect, blocking },
      ...{ oldestReadyMs, nextDueInMs: numberOf(nextDueInMs), asOf },
    };
  }

  async function changeWaiting(
    what: 'retry_now' | 'unblock',
    topic: string,
    ids: readonly string[],
    act: Act,
  ): Promise<boolean[]> {
    assertReason(act);
    const changed = await database.transaction(async (tx) => {
      await assertMayUndo(database, tx, act);
      const [row] = await database.rowsWithin(tx, `SELECT {schema}.${what}($1, $2)`, [topic, ids]);
      const results = among(ids, row);
      const events = ids.filter((_, index) => results[index]).map((id) => subject('event', id));
      const subjects = [subject('topic', topic), ...events];
      if (events.length > 0) await writeAudit(tx, { ...act, what, subjects, count: events.length });
      return results;
    });
    wake(topic, true);
    return changed;
  }

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

/** `rows` has one row more than `limit` if there is another page. The first column is the cursor. */
function pageOf<T>(rows: readonly Row[], limit: number, read: (row: Row) => T): Page<T> {
  const shown = rows.slice(0, limit);
  return { items: shown.map(read), cursor: rows.length > limit ? String(shown.at(-1)?.[0]) : undefined };
}

function among(ids: readonly string[], row: Row | undefined): boolean[] {
  const found = new Set(row?.[0] as string[]);
  // If `ids` contains an id twice, only its first result is true.
  return ids.map((id) => found.delete(id));
}

function duePlaceIn(cursor: string | undefined): [dueAt: number, seq: number] {
  if (cursor === undefined) return [Number.MIN_SAFE_INTEGER, 0];
  const [dueAt, seq] = placeIn(cursor);
  return [dueAt, numberIn(seq)];
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
