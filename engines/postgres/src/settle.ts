import {
  clampMs,
  commitFailed,
  LEASE_LOST,
  REPEATED,
  type Settlement,
  type SettlementResult,
  TOOK,
  TOPIC_UNKNOWN,
  TopicError,
} from '@holdfast/contracts';
import { storableJson, storableText } from './column-values.ts';
import type { Database, PostgresTransaction, Row } from './database.ts';
import { groupLeases, type LeaseGroups } from './lease-groups.ts';
import { columnOf } from './publish.ts';

type AnySettlement = Settlement<PostgresTransaction>;
type WithCommit = AnySettlement & { readonly commit: (tx: PostgresTransaction) => void | Promise<void> };

const ackText = 'SELECT took, asleep FROM {schema}.ack($1, $2, $3, $4, $5, $6)';
const settleText = `SELECT took, asleep FROM {schema}.settle($1, $2, $3, $4, false, $5, $6, $7, $8, $9, $10, $11, $12,
  $13, $14, $15, $16)`;
const fenceText = 'SELECT {schema}.fence(({schema}.topic_of($1)).topic, $2, $3, $4, true, false)';
const markText = `INSERT INTO {schema}.mark SELECT id, handler, {schema}.now_ms()
  FROM unnest($1::text[], $2::text[]) AS m(handler, id) ON CONFLICT DO NOTHING RETURNING handler, event_id`;
const unmarkText = `DELETE FROM {schema}.mark USING unnest($1::text[], $2::text[]) AS m(handler, id)
  WHERE event_id = id AND mark.handler = m.handler`;
const topicsText = 'SELECT name FROM {schema}.topic WHERE name = ANY ($1)';

export interface SettleOptions {
  readonly keepParkedMs: number;
  /**
   * Called when an event of the topic may be due. `isAsleep`: a consumer in another process may wait for a
   * notification.
   */
  wake(topic: string, isAsleep: boolean): void;
}

/** Settles a batch with one SQL call per topic. Each `commit` of a handler has its own savepoint. */
export async function settle(
  database: Database,
  batch: readonly AnySettlement[],
  options: SettleOptions,
): Promise<readonly SettlementResult[]> {
  const settled: SettlementResult[] = batch.map(() => LEASE_LOST);
  const topics = Map.groupBy(batch.keys(), (place) => batch[place]!.lease.topic);
  for (const [topic, places] of topics) {
    const withCommit = places.filter((place) => hasCommit(batch[place]!));
    const plain = places.filter((place) => !hasCommit(batch[place]!));
    try {
      if (withCommit.length > 0) await settleWithCommit(database, topic, batch, withCommit, settled, options);
      if (plain.length > 0) await settlePlain(database, topic, batch, plain, settled, options);
    } catch (error) {
      // A topic that does not exist has no leases.
      if (!(error instanceof TopicError)) throw error;
    }
  }
  return settled;
}

async function settlePlain(
  database: Database,
  topic: string,
  batch: readonly AnySettlement[],
  places: readonly number[],
  settled: SettlementResult[],
  { keepParkedMs, wake }: SettleOptions,
): Promise<void> {
  const known = await withKnownTarget(database, topic, batch, places, settled);
  const groups = groupLeases(
    batch.map(({ lease }) => lease),
    known,
  );
  if (groups.seqs.length === 0) return;
  const items = groups.places.map((place) => batch[place]!);
  const handlers = commonMarks(items);
  const isPlainAck = handlers !== undefined && items.every(({ kind }) => kind === 'ack');
  const [row] = isPlainAck
    ? await database.rows(ackText, [...valuesOf(topic, groups), handlers, false])
    : await database.rows(settleText, [
        ...valuesOf(topic, groups),
        ...columnsOf(items),
        clampMs(keepParkedMs),
        columnOf(items.map(consumerOf)),
      ]);
  answer(settled, groups, row, TOOK);
  wake(topic, row![1] === true);
}

/** Leaves out reroutes to an unknown topic: their result is `TOPIC_UNKNOWN`, and their events stay leased. */
async function withKnownTarget(
  database: Database,
  topic: string,
  batch: readonly AnySettlement[],
  places: readonly number[],
  settled: SettlementResult[],
): Promise<readonly number[]> {
  const targets = places.flatMap((place) => targetOf(batch[place]!) ?? []);
  if (targets.length === 0) return places;
  const known = new Set((await database.rows(topicsText, [targets.map(storableText)])).map(([name]) => name));
  const unknown = places.filter((place) => {
    const target = targetOf(batch[place]!);
    return target !== undefined && !known.has(target);
  });
  if (unknown.length === 0) return places;
  const groups = groupLeases(
    batch.map(({ lease }) => lease),
    unknown,
  );
  const [row] = await database.rows(fenceText, valuesOf(topic, groups));
  answer(settled, groups, row, TOPIC_UNKNOWN);
  return places.filter((place) => !unknown.includes(place));
}

/**
 * Locks the leases, writes the marks, calls each `commit`, and acknowledges. If a `commit` throws, its event
 * stays leased.
 */
async function settleWithCommit(
  database: Database,
  topic: string,
  batch: readonly AnySettlement[],
  places: readonly number[],
  settled: SettlementResult[],
  { wake }: SettleOptions,
): Promise<void> {
  const all = groupLeases(
    batch.map(({ lease }) => lease),
    places,
  );
  if (all.seqs.length === 0) return;
  const outcome = await database.transaction(async (tx) => {
    const [fenced] = await database.rowsWithin(tx, fenceText, valuesOf(topic, all));
    const good = all.places.filter((_, index) => (fenced![0] as boolean[])[index]);
    const marked = await markAll(
      database,
      tx,
      good.map((place) => batch[place]!),
    );
    const failures = new Map<number, SettlementResult>();
    const repeated = new Set<number>();
    await tx.query('SAVEPOINT holdfast_effect');
    for (const place of good) {
      const settlement = batch[place] as WithCommit;
      const { marks = [], lease } = settlement;
      if (marks.some((handler) => !marked.has(markKey(handler, lease.id)))) {
        repeated.add(place);
        continue;
      }
      try {
        await settlement.commit(tx);
        await tx.query('RELEASE SAVEPOINT holdfast_effect; SAVEPOINT holdfast_effect');
      } catch (error) {
        await tx.query('ROLLBACK TO SAVEPOINT holdfast_effect');
        await database.rowsWithin(tx, unmarkText, [marks, marks.map(() => lease.id)]);
        // Without a new savepoint, the rollback of the next `commit` would restore these marks.
        await tx.query('RELEASE SAVEPOINT holdfast_effect; SAVEPOINT holdfast_effect');
        failures.set(place, commitFailed(error));
      }
    }
    const done = groupLeases(
      batch.map(({ lease }) => lease),
      good.filter((place) => !failures.has(place)),
    );
    const [row] =
      done.seqs.length > 0
        ? await database.rowsWithin(tx, ackText, [...valuesOf(topic, done), null, true])
        : [[[], false]];
    return { failures, repeated, done, row: row! };
  });
  const { failures, repeated, done, row } = outcome;
  answer(settled, done, row, TOOK);
  for (const place of repeated) settled[place] = REPEATED;
  for (const [place, failure] of failures) settled[place] = failure;
  wake(topic, row[1] === true);
}

/** Stores a mark for each handler and event, and returns the new ones. */
async function markAll(
  database: Database,
  tx: PostgresTransaction,
  items: readonly AnySettlement[],
): Promise<ReadonlySet<string>> {
  const marks = items.flatMap(({ marks = [], lease }) => marks.map((handler) => ({ handler, id: lease.id })));
  if (marks.length === 0) return new Set();
  // All transactions use the same order, so that they never deadlock.
  marks.sort((a, b) => (markKey(a.handler, a.id) < markKey(b.handler, b.id) ? -1 : 1));
  const rows = await database.rowsWithin(tx, markText, [
    marks.map(({ handler }) => handler),
    marks.map(({ id }) => id),
  ]);
  return new Set(rows.map(([handler, id]) => markKey(handler as string, id as string)));
}

function answer(
  settled: SettlementResult[],
  { places }: LeaseGroups,
  row: Row | undefined,
  took: SettlementResult,
): void {
  const flags = row![0] as boolean[];
  for (const [index, place] of places.entries()) settled[place] = flags[index] ? took : LEASE_LOST;
}

export function valuesOf(topic: string, { tokens, counts, seqs }: LeaseGroups): unknown[] {
  return [topic, tokens, counts, seqs];
}

function columnsOf(items: readonly AnySettlement[]): unknown[] {
  const of = <T>(read: (item: AnySettlement) => T | null | undefined) => columnOf(items.map(read));
  const marks = items.flatMap((item, index) =>
    (item.marks ?? []).map((handler) => ({ handler, place: index + 1 })),
  );
  return [
    items.map(({ kind }) => kind),
    of((item) => ('delayMs' in item ? clampMs(item.delayMs) : null)),
    of((item) => ('error' in item && item.error ? storableJson(item.error) : null)),
    of((item) => ('story' in item ? JSON.stringify(item.story) : null)),
    // By default, later events of a key wait for a retried event, but not for a parked one.
    items.map((item) =>
      'holdsKey' in item && item.holdsKey !== undefined ? item.holdsKey : item.kind === 'retry',
    ),
    of(targetOf),
    of((item) => (item.kind === 'park' ? storableText(item.stop) : null)),
    of((item) => (item.kind === 'park' && item.keepMs !== undefined ? clampMs(item.keepMs) : null)),
    marks.map(({ place }) => place),
    marks.map(({ handler }) => handler),
  ];
}

/**
 * Returns the marks (names of handlers) if all settlements have the same. `null`: none. `undefined`: they
 * differ.
 */
function commonMarks(items: readonly AnySettlement[]): readonly string[] | null | undefined {
  const first = items[0]?.marks;
  const isCommon = items.every(
    ({ marks }) => marks === first || (marks?.join('\0') ?? '') === (first?.join('\0') ?? ''),
  );
  if (!isCommon) return undefined;
  return first === undefined || first.length === 0 ? null : first;
}

function consumerOf(settlement: AnySettlement): string | null {
  return settlement.kind === 'park' && settlement.consumer !== undefined
    ? storableText(settlement.consumer)
    : null;
}

function targetOf(settlement: AnySettlement): string | undefined {
  return settlement.kind === 'reroute' ? settlement.to : undefined;
}

function hasCommit(settlement: AnySettlement): settlement is WithCommit {
  return settlement.kind === 'ack' && settlement.commit !== undefined;
}

function markKey(handler: string, id: string): string {
  return `${handler}\0${id}`;
}
