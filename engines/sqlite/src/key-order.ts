import type { StatementSync } from 'node:sqlite';
import type { Doorbells } from './doorbells.ts';
import { queueOf } from './ready-queue.ts';
import type { SettlementBatch, TouchedKeys } from './settlement-batch.ts';
import type { Store } from './store.ts';

/**
 * Keeps events of one key in order. Only the earliest event of a key is in the ready queue; when it is
 * settled, the next one enters.
 */
export class KeyOrder {
  readonly #bells: Doorbells;
  readonly #promote: StatementSync;
  readonly #followers: StatementSync;
  readonly #hold: StatementSync;

  constructor(store: Store, bells: Doorbells) {
    this.#bells = bells;
    // Puts the next event of each key into the ready queue, unless it is leased or blocks the key.
    // ?2: [order_key, seq] of the settled events. ?3: their lease. ?4: the numbers of all events of that
    // lease.
    this.#promote = store.prepare(`
      INSERT OR IGNORE INTO holdfast_ready
      SELECT event.topic, ${queueOf}, event.due_at, event.seq
      FROM json_each(?2) freed CROSS JOIN holdfast_event event ON event.seq = (
        SELECT next.seq FROM holdfast_event next WHERE next.topic = ?1 AND next.order_key = freed.value ->> 0
        ORDER BY next.seq LIMIT 1)
      WHERE event.seq > freed.value ->> 1 AND event.lease_id IS NULL AND event.blocking = 0
        AND NOT (event.fence < ?3 AND event.seq IN (SELECT value FROM json_each(?4)))`);
    this.#followers = store.prepare(`
      SELECT seq FROM holdfast_event
      WHERE topic = ? AND order_key = ? AND seq > ? AND seq <= ? AND fence < ? AND lease_id IS NULL`);
    this.#hold = store.prepare('UPDATE holdfast_event SET lease_id = ? WHERE seq = ?');
  }

  keepOrder(batch: SettlementBatch): void {
    // The order matters: the first loop marks events that are still leased, and the second skips them.
    for (const [leaseId, touched] of batch.requeued) this.#holdFollowers(leaseId, touched, batch);
    for (const [leaseId, touched] of batch.freed) this.promote(touched, leaseId, batch.lease(leaseId)!.seqs);
  }

  promote({ topic, seqs }: TouchedKeys, leaseId = 0, leased: readonly number[] = []): void {
    const { changes } = this.#promote.run(
      topic.id,
      JSON.stringify([...seqs]),
      leaseId,
      JSON.stringify(leased),
    );
    if (Number(changes) > 0) this.#bells.ringAfterCommit(topic.name);
  }

  /** Marks later events of the key as still leased (`lease_id`), so that no worker leases them again. */
  #holdFollowers(leaseId: number, { topic, seqs }: TouchedKeys, batch: SettlementBatch): void {
    const { seqs: leased } = batch.lease(leaseId)!;
    if (leased.length === 0) return;
    const inLease = new Set(leased);
    for (const [orderKey, seq] of seqs) {
      const followers = this.#followers
        .all(topic.id, orderKey, seq, leased.at(-1)!, leaseId)
        .map((row) => Number(row.seq));
      for (const follower of followers) if (inLease.has(follower)) this.#hold.run(leaseId, follower);
    }
  }
}
