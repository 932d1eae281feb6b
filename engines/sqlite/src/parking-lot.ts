import {
  type Act,
  type AuditEntry,
  fingerprintOf,
  type NewlyParked,
  type ParkedEvent,
  type ParkedStatus,
  type ParkedSummary,
  type Payload,
} from '@holdfast/contracts';
import type { Store } from './store.ts';
import { toStoredMs } from './stored-time.ts';

/** An audit entry lists at most this many ids. Its `count` has the full number. */
const subjectsMax = 100;

type Row = Record<string, unknown>;

const noHeaders = Object.freeze({});

/** Stores parked events: events whose processing has finally failed. Call all methods within a transaction. */
export class ParkingLot {
  readonly #store: Store;
  readonly #keepMs: number;
  readonly #find;
  readonly #put;
  readonly #resolve;
  readonly #outcome;
  readonly #audit;
  readonly #overdue;
  readonly #forgetAudit;

  constructor(store: Store, keepMs: number) {
    this.#store = store;
    this.#keepMs = keepMs;
    this.#find = store.prepare('SELECT * FROM holdfast_parked WHERE id = ?');
    this.#put = store.prepare(`
      INSERT INTO holdfast_parked (id, status, operation, parked_at, removed_at, parkings, topic, type, key, tenant,
        reason, message, stop, fingerprint, final_attempt, is_edited, headers, correlation_id, idempotency_key,
        origin_topic, first_seen_at, expires_at, replay, error, story, edits, payload)
      VALUES (?, 'parked', NULL, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, '[]', ?)
      ON CONFLICT (id) DO UPDATE SET status = 'parked', operation = NULL, parked_at = excluded.parked_at,
        removed_at = excluded.removed_at, parkings = parkings + 1, topic = excluded.topic, type = excluded.type,
        key = excluded.key, tenant = excluded.tenant, reason = excluded.reason, message = excluded.message,
        stop = excluded.stop, fingerprint = excluded.fingerprint, final_attempt = excluded.final_attempt,
        headers = excluded.headers, correlation_id = excluded.correlation_id,
        idempotency_key = excluded.idempotency_key, origin_topic = excluded.origin_topic,
        first_seen_at = excluded.first_seen_at, expires_at = excluded.expires_at, replay = excluded.replay,
        error = excluded.error, story = excluded.story, discarded = NULL, payload = excluded.payload`);
    this.#resolve = store.prepare(
      `UPDATE holdfast_parked SET status = 'resolved', operation = NULL WHERE number = ?`,
    );
    this.#outcome = store.prepare(`
      UPDATE holdfast_operation SET released = released + ?2, succeeded = succeeded + ?3,
        failed_again = failed_again + ?4 WHERE id = ?1`);
    this.#audit = store.prepare(`
      INSERT INTO holdfast_audit (id, at, what, who, why, subjects, count) VALUES (?, ?, ?, ?, ?, ?, ?)`);
    this.#overdue = store.prepare(`
      DELETE FROM holdfast_parked WHERE number IN (
        SELECT number FROM holdfast_parked WHERE operation IS NULL AND removed_at <= ? LIMIT ? + 0) RETURNING id`);
    this.#forgetAudit = store.prepare(`
      DELETE FROM holdfast_audit WHERE number IN (
        SELECT number FROM holdfast_audit WHERE at <= ? ORDER BY number LIMIT ? + 0)`);
  }

  /** Returns the parked event with this id. `aheadMs` is how far wall time is ahead of store time. */
  find(id: string, aheadMs: number): ParkedEvent | undefined {
    const row = this.#find.get(id);
    return row && toParked(row, aheadMs);
  }

  /**
   * Parks an event for the first time, or again because its replay failed. Returns false if the event is already
   * parked.
   */
  park(event: NewlyParked, now: number, wall: number): boolean {
    const known = this.#find.get(event.id);
    const failedAgain = known !== undefined && known.operation !== null && known.operation === event.replay;
    if (known && !failedAgain && known.status !== 'resolved') return false;
    if (failedAgain) this.#count(known, 'failedAgain');
    const { diagnosis, payload, type, key, tenant, expiresAt, replay } = event;
    const { reason, message, stop, finalAttempt, error, story } = diagnosis;
    this.#put.run(
      ...[event.id, wall, toStoredMs(now + (event.keepMs ?? this.#keepMs)), event.topic],
      ...[
        type ?? null,
        key ?? null,
        tenant ?? null,
        reason,
        message,
        stop,
        fingerprintOf(event),
        finalAttempt,
      ],
      ...[JSON.stringify(event.headers), event.correlationId, event.idempotencyKey, event.originTopic],
      ...[
        toStoredMs(event.firstSeenAt),
        expiresAt === undefined ? null : toStoredMs(expiresAt),
        replay ?? null,
      ],
      ...[error === undefined ? null : JSON.stringify(error), JSON.stringify(story), payload],
    );
    return true;
  }

  /**
   * Records that the replay of an event succeeded. Returns false if the event does not belong to the replay
   * `operation`.
   */
  resolve(id: string, operation: string): boolean {
    const row = this.#find.get(id);
    if (row?.operation !== operation) return false;
    this.#count(row, 'succeeded');
    this.#resolve.run(Number(row.number));
    return true;
  }

  audit(what: AuditEntry['what'], subjects: readonly string[], { who, why }: Act, wall: number): void {
    const named = JSON.stringify(subjects.slice(0, subjectsMax));
    this.#audit.run(this.#store.newId(), wall, what, who, why, named, subjects.length);
  }

  /** Removes at most `limit` events whose retention time is over, and writes an audit entry. */
  sweep(now: number, wall: number, limit: number): number {
    const removed = this.#overdue.all(now, limit).map(({ id }) => String(id));
    if (removed.length > 0) {
      const act = { who: 'retention', why: 'their retention time is over' };
      this.audit('retention', removed, act, wall);
    }
    return removed.length;
  }

  sweepAudit(before: number, limit: number): number {
    return Number(this.#forgetAudit.run(before, limit).changes);
  }

  /**
   * Counts the outcome of a replayed event. If the event was not yet recorded as released (its status is not
   * `replaying`), it is counted as released, too.
   */
  #count(row: Row, outcome: 'succeeded' | 'failedAgain'): void {
    const released = row.status === 'replaying' ? 0 : 1;
    const succeeded = outcome === 'succeeded' ? 1 : 0;
    this.#outcome.run(String(row.operation), released, succeeded, 1 - succeeded);
  }
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
      error: json('error'),
      story: json('story'),
    },
    status: row.status as ParkedStatus,
    parkedAt: Number(row.parked_at),
    parkings: Number(row.parkings),
    removedAt: toStoredMs(Number(row.removed_at) + aheadMs),
    operation: text('operation'),
    original: hasOriginal
      ? { payload: row.original_payload as Payload, headers: json('original_headers') ?? noHeaders }
      : undefined,
    edits: json('edits'),
    discarded: json('discarded'),
  };
}

export const summaryColumns = `id, topic, type, key, tenant, status, parked_at, parkings, operation, reason, message,
  stop, final_attempt, fingerprint, removed_at, is_edited`;

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
    reason: String(row.reason),
    message: String(row.message),
    stop: String(row.stop),
    finalAttempt: Number(row.final_attempt),
    fingerprint: String(row.fingerprint),
    removedInMs: Math.max(0, Number(row.removed_at) - now),
    edited: row.is_edited === 1,
  };
}
