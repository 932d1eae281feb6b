import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Settlement } from '@holdfast/contracts';
import { decodeSeqs } from './run-length-seqs.ts';
import type { Time } from './store-clock.ts';
import type { Topic, Topics } from './topics.ts';

export type AnySettlement = Settlement<DatabaseSync>;

export interface LeaseRow {
  readonly topicId: number;
  readonly endsAt: number;
  /** True if the lease was extended for only some of its events. */
  readonly hasExtended: boolean;
  /** The numbers of the leased events. Empty unless the lease has several events of one key. */
  readonly seqs: readonly number[];
}

/** Keys whose events were settled. `seqs` has the number of the earliest changed event of each key. */
export interface TouchedKeys {
  readonly topic: Topic;
  readonly seqs: Map<string, number>;
}

export const leaseRowSql =
  'SELECT topic, ends_at, has_extended, has_followers, seqs FROM holdfast_lease WHERE id = ?';

const noSeqs: readonly number[] = [];

/** What all settlements of one `settle` call share, so that topics and leases are read only once. */
export class SettlementBatch {
  readonly settlements: readonly AnySettlement[];
  readonly now: number;
  readonly wall: number;
  /** Keys whose next event may be leased now, by lease id. */
  readonly freed = new Map<number, TouchedKeys>();
  /** Keys whose event is back in the queue, or is parked and blocks its key, by lease id. */
  readonly requeued = new Map<number, TouchedKeys>();
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
