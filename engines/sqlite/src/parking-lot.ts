import {
  earlierParkings,
  fingerprintOf,
  type NewlyParked,
  type ParkedEvent,
  type ParkedStatus,
  type ParkedSummary,
  type Payload,
  subject,
} from '@holdfast/contracts';
import type { AuditLog } from './audit-log.ts';
import type { CountedKind, ParkedCounts } from './parked-counts.ts';
import type { Store } from './store.ts';
import { toStoredMs } from './stored-time.ts';

type Row = Record<string, unknown>;

const noHeaders = Object.freeze({});

/** Stores parked events (events that wait for an operator). Call all methods within a transaction. */
export class ParkingLot {
  readonly #audit: AuditLog;
  readonly #counts: ParkedCounts;
  readonly #keepMs: number;
  readonly #find;
  readonly #put;
  readonly #resolve;
  readonly #outcome;
  readonly #overdue;

  constructor(store: Store, audit: AuditLog, counts: ParkedCounts, keepMs: number) {
    this.#audit = audit;
    this.#counts = counts;
    this.#keepMs = keepMs;
    this.#find = store.prepare('SELECT * FROM holdfast_parked WHERE id = ?');
    this.#put = store.prepare(`
      INSERT INTO holdfast_parked (id, status, version, parked_at, removed_at, parkings, topic, type, key, tenant,
        consumer, reason, message, stop, fingerprint, final_attempt, is_edited, headers, correlation_id,
        idempotency_key, origin_topic, first_seen_at, expires_at, replay, error, story, earlier, payload)
      VALUES (?, 'parked', 1, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET status = 'parked', replayed_by = coalesce(operation, replayed_by),
        operation = NULL, changed_by = NULL, version = version + 1, parked_at = excluded.parked_at,
        removed_at = excluded.removed_at, parkings = parkings + 1, topic = excluded.topic, type = excluded.type,
        key = excluded.key, tenant = excluded.tenant, consumer = excluded.consumer, reason = excluded.reason,
        message = excluded.message, stop = excluded.stop, fingerprint = excluded.fingerprint,
        final_attempt = excluded.final_attempt, headers = excluded.headers, correlation_id = excluded.correlation_id,
        idempotency_key = excluded.idempotency_key, origin_topic = excluded.origin_topic,
        first_seen_at = excluded.first_seen_at, expires_at = excluded.expires_at, replay = excluded.replay,
        error = excluded.error, story = excluded.story, earlier = excluded.earlier, discarded = NULL,
        payload = excluded.payload`);
    this.#resolve = store.prepare(`
      UPDATE holdfast_parked SET status = 'resolved', replayed_by = operation, operation = NULL, changed_by = NULL
      WHERE number = ?`);
    this.#outcome = store.prepare(`
      UPDATE holdfast_operation SET released = released + ?2, succeeded = succeeded + ?3,
        failed_again = failed_again + ?4 WHERE id = ?1`);
    this.#overdue = store.prepare(`
      DELETE FROM holdfast_parked WHERE number IN (
        SELECT number FROM holdfast_parked WHERE operation IS NULL AND removed_at <= ? LIMIT ? + 0)
      RETURNING id, status, fingerprint, topic`);
  }

  /** `aheadMs`: how far the wall clock is ahead of the store's clock. */
  find(id: string, aheadMs: number): ParkedEvent | undefined {
    const row = this.#find.get(id);
    return row && toParked(row, aheadMs);
  }

  park(event: NewlyParked, now: number, wall: number): boolean {
    const known = this.#find.get(event.id);
    const failedAgain = known !== undefined && known.operation !== null && known.operation === event.replay;
    if (known && !failedAgain && known.status !== 'resolved') return false;
    if (failedAgain) this.#noteOutcome(known, 'failedAgain');
    const { diagnosis, payload, type, key, tenant, expiresAt, replay } = event;
    const { reason, message, stop, finalAttempt, consumer, error, story } = diagnosis;
    const fingerprint = fingerprintOf(event);
    this.#put.run(
      ...[event.id, wall, toStoredMs(now + (event.keepMs ?? this.#keepMs)), event.topic],
      ...[type ?? null, key ?? null, tenant ?? null, consumer ?? null],
      ...[reason, message, stop, fingerprint, finalAttempt],
      ...[JSON.stringify(event.headers), event.correlationId, event.idempotencyKey, event.originTopic],
      ...[toStoredMs(event.firstSeenAt), expiresAt === undefined ? null : toStoredMs(expiresAt)],
      ...[replay ?? null, error === undefined ? null : JSON.stringify(error), JSON.stringify(story)],
      ...[known ? JSON.stringify(earlierParkings(toParked(known, 0))) : null, payload],
    );
    if (known) this.#counts.add(kindOf(known), -1);
    this.#counts.add(['parked', fingerprint, event.topic], 1);
    return true;
  }

  resolve(id: string, operation: string): boolean {
    const row = this.#find.get(id);
    if (row?.operation !== operation) return false;
    this.#noteOutcome(row, 'succeeded');
    this.#resolve.run(Number(row.number));
    this.#counts.move([row], row.status as ParkedStatus, 'resolved');
    return true;
  }

  sweep(now: number, wall: number, limit: number): number {
    const removed = this.#overdue.all(now, limit);
    for (const row of removed) this.#counts.add(kindOf(row), -1);
    if (removed.length > 0) {
      const act = { who: 'retention', why: 'their retention time is over' };
      const subjects = removed.map(({ id }) => subject('event', String(id)));
      this.#audit.write({ ...act, what: 'retention', subjects }, wall);
    }
    return removed.length;
  }

  /**
   * Counts the result of a replayed event. If the event was handled before it was recorded that the replay
   * had published it, that record is also made here.
   */
  #noteOutcome(row: Row, outcome: 'succeeded' | 'failedAgain'): void {
    const released = row.status === 'replaying' ? 0 : 1;
    const succeeded = outcome === 'succeeded' ? 1 : 0;
    this.#outcome.run(String(row.operation), released, succeeded, 1 - succeeded);
  }
}

function kindOf({ status, fingerprint, topic }: Row): CountedKind {
  return [String(status), String(fingerprint), String(topic)];
}

export function toParked(row: Row, aheadMs: number): ParkedEvent {
  const text = (name: string) => (row[name] as string | null) ?? undefined;
  const json = (name: string) => (row[name] === null ? undefined : JSON.parse(String(row[name])));
  const hasOriginal = row.original_payload !== null;
  return {
    id: String(row.id),
    topic: String(row.topic),
    payload: row.payload as Payload,
    type: text('type'),
    key: text('key'),
    tenant: text('tenant'),
    headers: json('headers') ?? noHeaders,
    correlationId: String(row.correlation_id),
    idempotencyKey: String(row.idempotency_key),
    originTopic: String(row.origin_topic),
    firstSeenAt: Number(row.first_seen_at),
    expiresAt: row.expires_at === null ? undefined : Number(row.expires_at),
    replay: text('replay'),
    diagnosis: {
      reason: String(row.reason),
      message: String(row.message),
      stop: String(row.stop),
      finalAttempt: Number(row.final_attempt),
      consumer: text('consumer'),
      error: json('error'),
      story: json('story'),
    },
    status: row.status as ParkedStatus,
    parkedAt: Number(row.parked_at),
    parkings: Number(row.parkings),
    removedAt: toStoredMs(Number(row.removed_at) + aheadMs),
    operation: text('operation'),
    replayedBy: text('replayed_by'),
    version: Number(row.version),
    earlier: json('earlier') ?? [],
    original: hasOriginal
      ? { payload: row.original_payload as Payload, headers: json('original_headers') ?? noHeaders }
      : undefined,
    edits: json('edits') ?? [],
    discarded: json('discarded'),
  };
}

export const summaryColumns = `id, topic, type, key, tenant, status, parked_at, parkings, operation, replayed_by,
  version, consumer, reason, message, stop, final_attempt, fingerprint, removed_at, is_edited`;

export function toSummary(row: Row, now: number): ParkedSummary {
  const text = (name: string) => (row[name] as string | null) ?? undefined;
  return {
    id: String(row.id),
    topic: String(row.topic),
    type: text('type'),
    key: text('key'),
    tenant: text('tenant'),
    status: row.status as ParkedStatus,
    parkedAt: Number(row.parked_at),
    parkings: Number(row.parkings),
    operation: text('operation'),
    replayedBy: text('replayed_by'),
    version: Number(row.version),
    reason: String(row.reason),
    message: String(row.message),
    stop: String(row.stop),
    finalAttempt: Number(row.final_attempt),
    consumer: text('consumer'),
    fingerprint: String(row.fingerprint),
    removedInMs: Math.max(0, Number(row.removed_at) - now),
    edited: row.is_edited === 1,
  };
}
