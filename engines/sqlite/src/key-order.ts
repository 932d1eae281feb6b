import type { StatementSync } from 'node:sqlite';
import type { Doorbells } from './doorbells.ts';
import { lineOf } from './publisher.ts';
import type { Lanes, SettlementBatch } from './settlement-batch.ts';
import type { Store } from './store.ts';

/** Keeps the order of keys when their events come and go. */
export class LaneKeeper {
  readonly #bells: Doorbells;
  readonly #promote: StatementSync;
  readonly #behind: StatementSync;
  readonly #hold: StatementSync;

  constructor(store: Store, bells: Doorbells) {
    this.#bells = bells;
    // The event behind one that has gone is the head now, unless it is in hand or blocks; freed is [lane, seq] of each,
    // and ?4 are the sequences of lease ?3, under which they were freed.
    this.#promote = store.prepare(`
      INSERT OR IGNORE INTO holdfast_line
      SELECT event.topic, ${lineOf}, event.due_at, event.seq
      FROM json_each(?2) freed CROSS JOIN holdfast_event event ON event.seq = (
        SELECT next.seq FROM holdfast_event next WHERE next.topic = ?1 AND next.lane = freed.value ->> 0
        ORDER BY next.seq LIMIT 1)
      WHERE event.seq > freed.value ->> 1 AND event.hand IS NULL AND event.blocking = 0
        AND NOT (event.fence < ?3 AND event.seq IN (SELECT value FROM json_each(?4)))`);
    this.#behind = store.prepare(`
      SELECT seq FROM holdfast_event
      WHERE topic = ? AND lane = ? AND seq > ? AND seq <= ? AND fence < ? AND hand IS NULL`);
    this.#hold = store.prepare('UPDATE holdfast_event SET hand = ? WHERE seq = ?');
  }

  /** At the end of a batch: those in hand are held before the next ones are let in. */
  keepOrder(batch: SettlementBatch): void {
    for (const [n, lanes] of batch.broken) this.#holdFollowers(n, lanes, batch);
    for (const [n, lanes] of batch.freed) this.promote(lanes, n, batch.lease(n)!.runs);
  }

  /** Lets the next event of each key into the line. */
  promote({ topic, seqs }: Lanes, n = 0, runs: readonly number[] = []): void {
    const { changes } = this.#promote.run(topic.id, JSON.stringify([...seqs]), n, JSON.stringify(runs));
    if (Number(changes) > 0) this.#bells.ringAfterCommit(topic.name);
  }

  /** A head is back in the line: those behind it that are still in hand must not be taken along with it. */
  #holdFollowers(n: number, { topic, seqs }: Lanes, batch: SettlementBatch): void {
    const { runs } = batch.lease(n)!;
    if (runs.length === 0) return;
    const inLease = new Set(runs);
    for (const [lane, seq] of seqs) {
      const behind = this.#behind.all(topic.id, lane, seq, runs.at(-1)!, n).map((row) => Number(row.seq));
      for (const follower of behind) if (inLease.has(follower)) this.#hold.run(n, follower);
    }
  }
}
