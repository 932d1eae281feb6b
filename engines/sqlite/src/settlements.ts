import type { DatabaseSync } from 'node:sqlite';
import {
  commitFailed,
  type Diagnosis,
  LEASE_LOST,
  messageMax,
  REPEATED,
  type SettlementResult,
  TOOK,
  TOPIC_UNKNOWN,
} from '@holdfast/contracts';
import { OptionsError } from 'holdfast';
import { type AckGroup, sortOut } from './ack-groups.ts';
import type { Doorbells } from './doorbells.ts';
import { errorText, fromToken, type Token, toEnvelope } from './event-row.ts';
import type { KeyOrder } from './key-order.ts';
import type { Leases } from './leases.ts';
import type { Marks } from './marks.ts';
import type { ParkingLot } from './parking-lot.ts';
import { isHead, queueOf } from './ready-queue.ts';
import { type AnySettlement, leaseRowSql, noteKey, SettlementBatch } from './settlement-batch.ts';
import { isFull } from './sqlite-errors.ts';
import type { Store } from './store.ts';
import type { Time } from './store-clock.ts';
import { toStoredMs } from './stored-time.ts';
import { seqsOf, type Topic, type Topics } from './topics.ts';

interface LeasedEvent {
  readonly seq: number;
  readonly leaseId: number;
  readonly topic: Topic;
  readonly id: string;
  readonly orderKey: string | null;
  readonly attempts: number;
  readonly replay: string | null;
}

const noMarks: readonly string[] = [];

const envelopeColumns = 'seq, topic, id, payload, type, key, tenant, rest, first_seen_at';
const isNoReplay = `(rest IS NULL OR rest ->> 'replay' IS NULL)`;

export interface SettlementParts {
  readonly store: Store;
  readonly topics: Topics;
  readonly leases: Leases;
  readonly marks: Marks;
  readonly lot: ParkingLot;
  readonly keyOrder: KeyOrder;
  readonly bells: Doorbells;
}

const synchronous =
  'a synchronous function, because a transaction of SQLite ends when the function returns: await before you return `commit`';

/** Settles leased events. Call `settle` within a transaction. */
export class Settlements {
  readonly #store: Store;
  readonly #topics: Topics;
  readonly #leases: Leases;
  readonly #marks: Marks;
  readonly #lot: ParkingLot;
  readonly #keyOrder: KeyOrder;
  readonly #bells: Doorbells;
  readonly #lease;
  readonly #leased;
  readonly #envelope;
  readonly #ackMany;
  readonly #ackManyByKey;
  readonly #keepMany;
  readonly #remove;
  readonly #retry;
  readonly #retryLeased;
  readonly #enqueueRetry;
  readonly #snooze;
  readonly #return;
  readonly #block;
  readonly #enqueue;
  readonly #move;

  constructor(parts: SettlementParts) {
    const { store, topics, leases, marks, lot, keyOrder, bells } = parts;
    this.#store = store;
    this.#topics = topics;
    this.#leases = leases;
    this.#marks = marks;
    this.#lot = lot;
    this.#keyOrder = keyOrder;
    this.#bells = bells;
    const ofSeqs = `seq IN (SELECT value FROM json_each(?1)) AND fence < ?2 AND ${isNoReplay}`;
    this.#lease = store.prepare(leaseRowSql);
    this.#ackMany = store.prepare(`DELETE FROM holdfast_event WHERE ${ofSeqs}`);
    this.#ackManyByKey = store.prepareRows(
      `DELETE FROM holdfast_event WHERE ${ofSeqs} RETURNING order_key, seq`,
    );
    this.#keepMany = store.prepare(`
      INSERT INTO holdfast_settled SELECT ${envelopeColumns}, ?3, ?4, ?5 FROM holdfast_event
      WHERE seq IN (SELECT value FROM json_each(?1)) AND fence < ?2`);
    this.#leased = store.prepare(`
      SELECT event.id, event.order_key, event.attempts, event.rest ->> 'replay' AS replay FROM holdfast_event event
      JOIN holdfast_lease lease ON lease.id = ?2
      WHERE event.seq = ?1 AND event.fence < ?2 AND coalesce(event.extended_until, lease.ends_at) > ?3`);
    this.#envelope = store.prepare('SELECT * FROM holdfast_event WHERE seq = ?');
    this.#remove = store.prepare('DELETE FROM holdfast_event WHERE seq = ?');
    const free = 'fence = ?2, extended_until = NULL, lease_id = NULL';
    this.#retry = store.prepare(`
      UPDATE holdfast_event SET ${free}, attempts = attempts + 1, deaths = 0, due_at = ?3, next_delay_ms = ?4,
        last_error = ?5, story = ?6, order_key = CASE WHEN ?7 THEN order_key END WHERE seq = ?1`);
    this.#retryLeased = store.prepare(`
      UPDATE holdfast_event SET ${free}, attempts = attempts + 1, deaths = 0, due_at = ?3, next_delay_ms = ?4,
        last_error = ?5, story = ?6
      WHERE seq = ?1 AND fence < ?2 AND id = ?7 AND coalesce(extended_until, ?8) > ?9`);
    this.#enqueueRetry = store.prepare('INSERT INTO holdfast_ready VALUES (?1, 1, ?2, ?3)');
    this.#snooze = store.prepare(`
      UPDATE holdfast_event SET ${free}, snoozes = snoozes + 1, deaths = 0, due_at = ?3, next_delay_ms = ?4
      WHERE seq = ?1`);
    this.#return = store.prepare(`UPDATE holdfast_event SET ${free} WHERE seq = ?1`);
    this.#block = store.prepare(`UPDATE holdfast_event SET ${free}, deaths = 0, blocking = 1 WHERE seq = ?1`);
    this.#enqueue = store.prepare(`
      INSERT INTO holdfast_ready
      SELECT topic, ${queueOf}, due_at, seq FROM holdfast_event event WHERE seq = ? AND ${isHead}`);
    this.#move = store.prepare(`
      UPDATE OR IGNORE holdfast_event SET ${free}, seq = ?3, topic = ?4, 
        rest = json_set(coalesce(rest, '{}'), '$.originTopic', coalesce(rest ->> 'originTopic', ?5)),
        order_key = CASE WHEN ?6 THEN key END, due_at = ?7, attempts = 0, snoozes = 0, deaths = 0, next_delay_ms = NULL
      WHERE seq = ?1`);
  }

  settle(settlements: readonly AnySettlement[], time: Time): SettlementResult[] {
    const batch = new SettlementBatch(settlements, time, this.#topics, this.#lease);
    const answers: SettlementResult[] = new Array(settlements.length).fill(LEASE_LOST);
    const tokens = settlements.map(({ lease }) => fromToken(lease.token));
    const { groups, others } = sortOut(settlements, tokens);
    for (const group of groups) {
      if (this.#ackTogether(group, batch)) for (const index of group.indexes) answers[index] = TOOK;
      else others.push(...group.indexes);
    }
    for (const index of others.sort((a, b) => a - b)) {
      const token = tokens[index];
      if (!token) continue;
      const settlement = settlements[index]!;
      const answer =
        this.#retryPlainly(settlement, token, batch) ?? this.#settleOne(settlement, token, batch);
      if (answer.took) batch.count(token.leaseId, 1);
      answers[index] = answer;
    }
    this.#keyOrder.keepOrder(batch);
    for (const [leaseId, count] of batch.settled) this.#leases.settled(leaseId, count);
    return answers;
  }

  /** Acknowledges all events of the group, or changes nothing and returns false. */
  #ackTogether({ leaseId, topic: name, marks, indexes, seqs }: AckGroup, batch: SettlementBatch): boolean {
    const { settlements, now } = batch;
    const lease = batch.lease(leaseId);
    const topic = batch.topic(name);
    if (!lease || !topic || topic.id !== lease.topicId) return false;
    if (lease.hasExtended || lease.endsAt <= now) return false;
    const json = JSON.stringify(seqs);
    this.#store.prepare('SAVEPOINT holdfast_acks').run();
    const ids = marks.length === 0 ? [] : indexes.map((index) => settlements[index]!.lease.id);
    const isMarked = marks.every((handler) => this.#marks.writeMany(handler, ids, json, leaseId, now));
    if (isMarked && topic.keepSettledMs > 0) {
      this.#keepMany.run(json, leaseId, 'ack', batch.wall, toStoredMs(now + topic.keepSettledMs));
    }
    let acked = 0;
    let touched: [orderKey: string | null, seq: number][] = [];
    if (isMarked && topic.ordering === 'key') {
      touched = this.#ackManyByKey.all(json, leaseId) as unknown as typeof touched;
      acked = touched.length;
    } else if (isMarked) acked = Number(this.#ackMany.run(json, leaseId).changes);
    const isAll = acked === seqs.length;
    if (!isAll) this.#undoTo('holdfast_acks');
    this.#store.prepare('RELEASE holdfast_acks').run();
    if (!isAll) return false;
    for (const [orderKey, seq] of touched) noteKey(batch.freed, leaseId, topic, orderKey, seq);
    batch.count(leaseId, acked);
    return true;
  }

  /** A fast path for retries in topics without key order. `undefined`: the settlement is of another kind. */
  #retryPlainly(
    settlement: AnySettlement,
    { leaseId, seq }: Token,
    batch: SettlementBatch,
  ): SettlementResult | undefined {
    if (settlement.kind !== 'retry' || settlement.marks !== undefined) return undefined;
    const { now } = batch;
    const { lease, delayMs, error, story } = settlement;
    const row = batch.lease(leaseId);
    const topic = batch.topic(lease.topic);
    if (!row || topic?.id !== row.topicId || topic.ordering !== 'none') return undefined;
    const dueAt = toStoredMs(now + delayMs);
    const { changes } = this.#retryLeased.run(
      seq,
      leaseId,
      dueAt,
      delayMs,
      errorText(error),
      JSON.stringify(story),
      lease.id,
      row.endsAt,
      now,
    );
    if (changes === 0) return LEASE_LOST;
    this.#enqueueRetry.run(topic.id, dueAt, seq);
    this.#bells.ringAfterCommit(topic.name);
    return TOOK;
  }

  #settleOne(settlement: AnySettlement, token: Token, batch: SettlementBatch): SettlementResult {
    const { now } = batch;
    const event = this.#find(settlement, token, batch);
    if (!event) return LEASE_LOST;
    const target = settlement.kind === 'reroute' ? batch.topic(settlement.to) : undefined;
    if (settlement.kind === 'reroute' && !target) return TOPIC_UNKNOWN;
    const { commit, marks = noMarks } = { commit: undefined, ...settlement };
    if (!commit) {
      for (const handler of marks) this.#marks.write({ handler, eventId: event.id }, now);
      this.#placeAnew(event, settlement, target, batch);
      return TOOK;
    }
    return this.#withCommit(event, marks, commit, now, () =>
      this.#placeAnew(event, settlement, target, batch),
    );
  }

  /**
   * Writes the marks, calls `commit`, and stores the new state. If a mark exists, the event was already
   * handled, and `commit` is not called.
   */
  #withCommit(
    event: LeasedEvent,
    marks: readonly string[],
    commit: (tx: DatabaseSync) => unknown,
    now: number,
    place: () => void,
  ): SettlementResult {
    this.#store.prepare('SAVEPOINT holdfast_commit').run();
    let isFirst = true;
    for (const handler of marks) {
      isFirst = this.#marks.write({ handler, eventId: event.id }, now) && isFirst;
    }
    const failure = isFirst ? this.#tryCommit(commit) : undefined;
    if (failure) this.#undoTo('holdfast_commit');
    else place();
    this.#store.prepare('RELEASE holdfast_commit').run();
    return failure ?? (isFirst ? TOOK : REPEATED);
  }

  #undoTo(savepoint: string): void {
    this.#store.prepare(`ROLLBACK TO ${savepoint}`).run();
    this.#marks.forgetWritten();
  }

  #tryCommit(commit: (tx: DatabaseSync) => unknown): SettlementResult | undefined {
    const { database } = this.#store;
    try {
      const answer = commit(database);
      if (!(answer instanceof Promise)) return undefined;
      // An asynchronous `commit` would write after the end of this transaction, so refuse a promise.
      answer.catch(() => {});
      throw new OptionsError('commit', 'a promise', synchronous);
    } catch (error) {
      // A full disk is not the fault of `commit`. Throw, so that the caller repeats the settlement later.
      if (!database.isTransaction || isFull(error)) throw error;
      return commitFailed(error);
    }
  }

  #find({ lease }: AnySettlement, { leaseId, seq }: Token, batch: SettlementBatch): LeasedEvent | undefined {
    const row = this.#leased.get(seq, leaseId, batch.now);
    const topic = row && batch.topic(lease.topic);
    if (!topic || row.id !== lease.id) return undefined;
    const { from, to } = seqsOf(topic);
    if (seq < from || seq > to) return undefined;
    return {
      seq,
      leaseId,
      topic,
      id: lease.id,
      orderKey: row.order_key as string | null,
      attempts: Number(row.attempts),
      replay: row.replay as string | null,
    };
  }

  #placeAnew(
    event: LeasedEvent,
    settlement: AnySettlement,
    target: Topic | undefined,
    batch: SettlementBatch,
  ): void {
    const { now } = batch;
    const { seq, leaseId, topic, orderKey } = event;
    switch (settlement.kind) {
      case 'ack':
      case 'discard':
        this.#finish(event, settlement.kind, batch);
        return;
      case 'retry': {
        const { delayMs, error, story, holdsKey = true } = settlement;
        const failure = [errorText(error), JSON.stringify(story)] as const;
        this.#retry.run(seq, leaseId, toStoredMs(now + delayMs), delayMs, ...failure, holdsKey ? 1 : 0);
        if (!holdsKey) noteKey(batch.freed, leaseId, topic, orderKey, seq);
        break;
      }
      case 'snooze':
        this.#snooze.run(seq, leaseId, toStoredMs(now + settlement.delayMs), settlement.delayMs);
        break;
      case 'return':
        this.#return.run(seq, leaseId);
        break;
      case 'park':
        this.#setAside(event, settlement, batch);
        return;
      case 'reroute':
        this.#reroute(event, target!, batch);
        return;
    }
    noteKey(batch.requeued, leaseId, topic, orderKey, seq);
    this.#enqueue.run(seq);
    this.#bells.ringAfterCommit(topic.name);
  }

  #finish(event: LeasedEvent, how: 'ack' | 'discard', batch: SettlementBatch): void {
    const { now, wall } = batch;
    const { seq, leaseId, topic, id, replay } = event;
    if (topic.keepSettledMs > 0) {
      this.#keepMany.run(JSON.stringify([seq]), leaseId, how, wall, toStoredMs(now + topic.keepSettledMs));
    }
    if (replay !== null) this.#lot.resolve(id, replay);
    this.#removeAndFree(event, batch);
  }

  #setAside(event: LeasedEvent, settlement: AnySettlement & { kind: 'park' }, batch: SettlementBatch): void {
    const { now, wall } = batch;
    const { error, stop, story, consumer, keepMs, holdsKey = false } = settlement;
    const diagnosis: Diagnosis = {
      reason: error?.type ?? stop,
      message: (error?.message ?? '').slice(0, messageMax),
      stop,
      finalAttempt: event.attempts + 1,
      consumer,
      error,
      story,
    };
    const envelope = toEnvelope(this.#envelope.get(event.seq)!, event.topic.name, wall - now);
    this.#lot.park({ ...envelope, diagnosis, ...(keepMs !== undefined && { keepMs }) }, now, wall);
    if (holdsKey && event.orderKey !== null) {
      this.#block.run(event.seq, event.leaseId);
      noteKey(batch.requeued, event.leaseId, event.topic, event.orderKey, event.seq);
    } else this.#removeAndFree(event, batch);
  }

  #reroute(event: LeasedEvent, target: Topic, batch: SettlementBatch): void {
    const { seq, leaseId, topic, orderKey } = event;
    const moved = seqsOf(target).from + this.#store.sequence.take(1);
    const isNew = this.#move.run(
      seq,
      leaseId,
      moved,
      target.id,
      topic.name,
      target.ordering === 'key' ? 1 : 0,
      batch.now,
    );
    // The target topic already has this event, so delete this one.
    if (isNew.changes === 0) this.#remove.run(seq);
    noteKey(batch.freed, leaseId, topic, orderKey, seq);
    this.#enqueue.run(moved);
    this.#bells.ringAfterCommit(target.name);
  }

  #removeAndFree({ seq, leaseId, topic, orderKey }: LeasedEvent, batch: SettlementBatch): void {
    this.#remove.run(seq);
    noteKey(batch.freed, leaseId, topic, orderKey, seq);
  }
}
