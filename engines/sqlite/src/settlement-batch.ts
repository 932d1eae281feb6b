import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Settlement } from '@holdfast/contracts';
import { fromRuns } from './run-length-seqs.ts';
import type { Time } from './store-clock.ts';
import type { Topic, Topics } from './topics.ts';

export type AnySettlement = Settlement<DatabaseSync>;

export interface LeaseRow {
  readonly topicId: number;
  readonly endsAt: number;
  /** Heartbeats have moved the end for some of its events. */
  readonly hasKept: boolean;
  /** Its sequences, where it has runs of a key; otherwise none: nobody asks who follows whom. */
  readonly runs: readonly number[];
}

/** Keys of a topic, each with the earliest sequence that something has happened to. */
export interface Lanes {
  readonly topic: Topic;
  readonly seqs: Map<string, number>;
}

export const leaseRowSql = 'SELECT topic, ends_at, has_kept, has_runs, seqs FROM holdfast_lease WHERE n = ?';

const noRuns: readonly number[] = [];

/** What the settlements of one call have in common: read once, and done once for all at the end. */
export class SettlementBatch {
  readonly settlements: readonly AnySettlement[];
  readonly now: number;
  /** Wall time, for what people read. */
  readonly wall: number;
  /** By lease: keys that an event has left. */
  readonly freed = new Map<number, Lanes>();
  /** By lease: keys for which an event is back in the line. */
  readonly broken = new Map<number, Lanes>();
  /** By lease: how many are settled. */
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

  lease(n: number): LeaseRow | undefined {
    if (!this.#leases.has(n)) this.#leases.set(n, toLeaseRow(this.#leaseRow.get(n)));
    return this.#leases.get(n);
  }

  count(n: number, settled: number): void {
    this.settled.set(n, (this.settled.get(n) ?? 0) + settled);
  }
}

/** Notes that something has happened to a key; without one there is nothing to note. */
export function note(
  lanes: Map<number, Lanes>,
  n: number,
  topic: Topic,
  lane: string | null,
  seq: number,
): void {
  if (lane === null) return;
  const known = lanes.get(n) ?? { topic, seqs: new Map() };
  lanes.set(n, known);
  const earliest = known.seqs.get(lane);
  if (earliest === undefined || seq < earliest) known.seqs.set(lane, seq);
}

function toLeaseRow(row: Record<string, unknown> | undefined): LeaseRow | undefined {
  return (
    row && {
      topicId: Number(row.topic),
      endsAt: Number(row.ends_at),
      hasKept: row.has_kept === 1,
      runs: row.has_runs === 1 ? fromRuns(String(row.seqs)) : noRuns,
    }
  );
}
