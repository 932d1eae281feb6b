import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Settlement } from '@holdfast/contracts';
import { decodeSeqs } from './run-length-seqs.ts';
import type { Time } from './store-clock.ts';
import type { Topic, Topics } from './topics.ts';

export type AnySettlement = Settlement<DatabaseSync>;

export interface LeaseRow {
  readonly topicId: number;
  readonly endsAt: number;
  /** True if a heartbeat has extended the lease for some of its events only. */
  readonly hasExtended: boolean;
  /**
   * The sequence numbers of the leased events. Empty unless the lease has several events of one key: only then are
   * these numbers needed, to restore key order.
   */
  readonly seqs: readonly number[];
}

/** Keys of a topic whose events were settled, each with the earliest sequence number that a settlement changed. */
export interface TouchedKeys {
  readonly topic: Topic;
  readonly seqs: Map<string, number>;
}

export const leaseRowSql =
  'SELECT topic, ends_at, has_extended, has_followers, seqs FROM holdfast_lease WHERE id = ?';

const noSeqs: readonly number[] = [];

/**
 * The state that all settlements of one `settle` call share. Topics and leases are read only once, and key order is
 * restored once at the end.
 */
export class SettlementBatch {
  readonly settlements: readonly AnySettlement[];
  readonly now: number;
  /** Wall time, for times that people read. `now` is the store's time. */
  readonly wall: number;
  /** For each lease id, the keys whose event was removed or gave up its place in the key's order. */
  readonly freed = new Map<number, TouchedKeys>();
  /** For each lease id, the keys whose event is back in the ready queue, or is parked and blocks its key. */
  readonly requeued = new Map<number, TouchedKeys>();
  /** For each lease id, the number of settled events. */
  readonly settled = new Map<number, number>();
  readonly #known: Topics;
  readonly #leaseRow: StatementSync;
  readonly #topics = new Map<string, Topic | undefined>();
  readonly #leases = new Map<number, LeaseRow | undefined>();

  constructor(
    settlements: readonly AnySettlement[],
    { now, wall }: Time,
    known: Topics,
    leaseRow: StatementSync,
  ) {
    this.settlements = settlements;
    this.now = now;
    this.wall = wall;
    this.#known = known;
    this.#leaseRow = leaseRow;
  }

  topic(name: string): Topic | undefined {
    if (!this.#topics.has(name)) this.#topics.set(name, this.#known.find(name));
    return this.#topics.get(name);
  }

  lease(leaseId: number): LeaseRow | undefined {
    if (!this.#leases.has(leaseId)) this.#leases.set(leaseId, toLeaseRow(this.#leaseRow.get(leaseId)));
    return this.#leases.get(leaseId);
  }

  count(leaseId: number, settled: number): void {
    this.settled.set(leaseId, (this.settled.get(leaseId) ?? 0) + settled);
  }
}

/** Records that a settlement changed a key. An event without a key is ignored. */
export function noteKey(
  touched: Map<number, TouchedKeys>,
  leaseId: number,
  topic: Topic,
  orderKey: string | null,
  seq: number,
): void {
  if (orderKey === null) return;
  const known = touched.get(leaseId) ?? { topic, seqs: new Map() };
  touched.set(leaseId, known);
  const earliest = known.seqs.get(orderKey);
  if (earliest === undefined || seq < earliest) known.seqs.set(orderKey, seq);
}

function toLeaseRow(row: Record<string, unknown> | undefined): LeaseRow | undefined {
  return (
    row && {
      topicId: Number(row.topic),
      endsAt: Number(row.ends_at),
      hasExtended: row.has_extended === 1,
      seqs: row.has_followers === 1 ? decodeSeqs(String(row.seqs)) : noSeqs,
    }
  );
}
