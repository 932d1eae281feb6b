import type { Settlement } from '../broker.ts';
import { diagnosisOf } from '../diagnosis.ts';
import { commitFailed, REPEATED, type SettlementResult, TOOK, TOPIC_UNKNOWN } from '../settlement-result.ts';
import { isMarked, writeMark } from './ledger.ts';
import { park, resolve } from './parking.ts';
import type { SharedState } from './shared-state.ts';
import { beginTransaction, type MemoryStorage, type MemoryTransaction, type Row } from './storage.ts';

type AnySettlement = Settlement<MemoryTransaction>;

/**
 * The result of `commit`, which only collects its writes. `apply` performs these writes together with the
 * settlement.
 */
export type Commit =
  | { readonly apply: () => void; readonly repeated: boolean }
  | { readonly failure: SettlementResult };

export async function runCommit(storage: MemoryStorage, settlement: AnySettlement): Promise<Commit> {
  const { marks = [], lease } = settlement;
  if (settlement.kind !== 'ack' || !settlement.commit) return { apply: () => {}, repeated: false };
  if (marks.some((handler) => isMarked(storage, { handler, eventId: lease.id }))) {
    return { apply: () => {}, repeated: true };
  }
  const { tx, apply } = beginTransaction(storage);
  try {
    await settlement.commit(tx);
    return { apply, repeated: false };
  } catch (error) {
    return { failure: commitFailed(error) };
  }
}

/** This function is synchronous, so that no other call sees a half-applied settlement. */
export function applySettlement(
  shared: SharedState,
  row: Row,
  settlement: AnySettlement,
  commit: Commit,
  now: number,
): SettlementResult {
  if ('failure' in commit) return commit.failure;
  if (settlement.kind === 'reroute' && !shared.storage.topics.has(settlement.to)) return TOPIC_UNKNOWN;
  for (const handler of settlement.marks ?? []) writeMark(shared, { handler, eventId: row.envelope.id });
  commit.apply();
  moveRow(shared, row, settlement, now);
  row.lease = undefined;
  // A returned event was not handled. If it was a suspect (its lease had expired), it stays one.
  if (settlement.kind !== 'return') Object.assign(row, { suspect: false, deaths: 0 });
  return commit.repeated ? REPEATED : TOOK;
}

function moveRow(shared: SharedState, row: Row, settlement: AnySettlement, now: number): void {
  switch (settlement.kind) {
    case 'ack':
    case 'discard':
      finish(shared, row, settlement.kind, now);
      break;
    case 'retry':
      row.attempts += 1;
      row.lastError = settlement.error;
      row.story = settlement.story;
      if (settlement.holdsKey === false) row.orderKey = undefined;
      delay(row, settlement.delayMs, now);
      break;
    case 'snooze':
      row.snoozes += 1;
      delay(row, settlement.delayMs, now);
      break;
    case 'return':
      break;
    case 'park':
      parkRow(shared, row, settlement, now);
      break;
    case 'reroute':
      reroute(shared, row, settlement.to, now);
      break;
  }
}

function delay(row: Row, delayMs: number, now: number): void {
  row.dueAt = now + delayMs;
  row.nextDelayMs = delayMs;
}

function finish({ storage, bounds }: SharedState, row: Row, how: 'ack' | 'discard', now: number): void {
  const topic = storage.topics.get(row.envelope.topic)!;
  topic.rows.delete(row.envelope.id);
  resolve(storage, row.envelope.id, row.envelope.replay);
  if (topic.keepSettledMs <= 0) return;
  const event = { ...row.envelope, how, settledAt: now };
  topic.settled.push({ order: row.order, event, removedAt: now + topic.keepSettledMs });
  if (topic.settled.length > bounds.settledMax) topic.settled.shift();
}

function parkRow(
  shared: SharedState,
  row: Row,
  settlement: AnySettlement & { kind: 'park' },
  now: number,
): void {
  const { keepMs, holdsKey = false } = settlement;
  const diagnosis = diagnosisOf(settlement as Settlement & { kind: 'park' }, row.attempts);
  park(shared, { ...row.envelope, diagnosis, ...(keepMs !== undefined && { keepMs }) }, now);
  if (holdsKey && row.orderKey !== undefined) row.blocking = true;
  else shared.storage.topics.get(row.envelope.topic)!.rows.delete(row.envelope.id);
}

function reroute({ storage }: SharedState, row: Row, to: string, now: number): void {
  const target = storage.topics.get(to)!;
  storage.topics.get(row.envelope.topic)!.rows.delete(row.envelope.id);
  // The target topic already has this event, so drop this one.
  if (target !== storage.topics.get(row.envelope.topic) && target.rows.has(row.envelope.id)) return;
  Object.assign(row, {
    envelope: { ...row.envelope, topic: to },
    order: storage.next(),
    orderKey: target.ordering === 'key' ? row.envelope.key : undefined,
    dueAt: now,
    attempts: 0,
    snoozes: 0,
    nextDelayMs: undefined,
  });
  target.rows.set(row.envelope.id, row);
  storage.ring(to);
}
