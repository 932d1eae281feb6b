import {
  type HistoryRange,
  numberIn,
  type Page,
  type PageRequest,
  type SettledEvent,
  type TopicCounts,
  type Waiting,
  type WaitingState,
} from '@holdfast/contracts';
import type { Appointments } from './appointments.ts';
import type { ControlBoard, TopicControls } from './controls.ts';
import type { Doorbells } from './doorbells.ts';
import { toEnvelope, toTrials } from './event-row.ts';
import type { KeyOrder } from './key-order.ts';
import { isHead } from './ready-queue.ts';
import { decodeSeqs } from './run-length-seqs.ts';
import type { Store } from './store.ts';
import type { Time } from './store-clock.ts';
import { toStoredMs } from './stored-time.ts';
import { seqsOf, type Topic, type Topics } from './topics.ts';

type Row = Record<string, unknown>;

/**
 * Shows an operator the events that are not settled, and lets the operator retry an event now or unblock the key of an
 * event.
 */
export function queueInspection(
  store: Store,
  topics: Topics,
  board: ControlBoard,
  appointments: Appointments,
  keyOrder: KeyOrder,
  bells: Doorbells,
) {
  const readyCounts = store.prepare(`
    SELECT
      count(*) FILTER (WHERE queue < 2 AND due_at <= ?2) AS ready, count(*) FILTER (WHERE queue < 2 AND due_at > ?2) AS delayed,
      count(*) FILTER (WHERE queue = 2) AS suspect,
      min(due_at) FILTER (WHERE queue < 2) AS first_due_at
    FROM holdfast_ready WHERE topic = ?1`);
  const freeCounts = store.prepare(`
    SELECT
      count(*) FILTER (WHERE queue < 2 AND ready.due_at <= ?2) AS ready,
      count(*) FILTER (WHERE queue < 2 AND ready.due_at > ?2) AS delayed,
      count(*) FILTER (WHERE queue = 2) AS suspect,
      min(ready.due_at) FILTER (WHERE queue < 2) AS first_due_at
    FROM holdfast_ready ready CROSS JOIN holdfast_event event ON event.seq = ready.seq
    WHERE ready.topic = ?1 AND coalesce(event.tenant NOT IN (SELECT value FROM json_each(?3)), true)
      AND coalesce(event.key NOT IN (SELECT value FROM json_each(?4)), true)`);
  const queued = store.prepare('SELECT count(*) AS count FROM holdfast_ready WHERE topic = ?');
  const held = store.prepare('SELECT count(*) AS count FROM holdfast_held WHERE topic = ?');
  const leased = store.prepare(
    'SELECT coalesce(sum(unsettled), 0) AS count FROM holdfast_lease WHERE topic = ?',
  );
  const withKeys = store.prepare(`
    SELECT count(*) - count(DISTINCT order_key) AS count FROM holdfast_event WHERE topic = ? AND order_key IS NOT NULL`);
  const leasesOfTopic = store.prepare('SELECT id, owner, seqs FROM holdfast_lease WHERE topic = ?');
  const leasedFollowers = store.prepare(`
    SELECT count(*) AS count FROM json_each(?) each
    CROSS JOIN holdfast_event event ON event.seq = each.value WHERE event.fence < ? AND NOT ${isHead}`);
  const blocking = store.prepare(`
    SELECT count(*) AS count, count(*) FILTER (WHERE NOT ${isHead}) AS followers
    FROM holdfast_event event WHERE topic = ? AND blocking = 1`);

  const page = store.prepare(`
    SELECT event.*, NOT ${isHead} AS is_follower FROM holdfast_event event
    WHERE event.seq > ? AND event.seq <= ? ORDER BY event.seq LIMIT ? + 0`);
  const find = store.prepare(
    `SELECT event.*, NOT ${isHead} AS is_follower FROM holdfast_event event WHERE id = ? AND topic = ?`,
  );
  const remove = store.prepare('DELETE FROM holdfast_event WHERE seq = ?');
  const settled = store.prepare(`
    SELECT * FROM holdfast_settled
    WHERE seq > ? AND seq <= ? AND removed_at > ? AND first_seen_at >= ? AND first_seen_at < ? ORDER BY seq LIMIT ? + 0`);

  function countsOf(topic: Topic, topicControls: TopicControls, { now, wall }: Time): TopicCounts {
    const quarantine = [topicControls.tenants, topicControls.keys].map((names) =>
      JSON.stringify([...names.keys()]),
    );
    const hasQuarantine = topicControls.tenants.size + topicControls.keys.size > 0;
    const counts = hasQuarantine
      ? freeCounts.get(topic.id, now, quarantine[0]!, quarantine[1]!)!
      : readyCounts.get(topic.id, now)!;
    const [ready, delayed, suspect] = [Number(counts.ready), Number(counts.delayed), Number(counts.suspect)];
    const heldInQueue = hasQuarantine ? number(queued, topic) - ready - delayed - suspect : 0;
    const { count: blocked, followers } = blocking.get(topic.id)!;
    const behind =
      topic.ordering === 'key'
        ? number(withKeys, topic) - countLeasedFollowers(topic) - Number(followers)
        : 0;
    const firstDueAt = counts.first_due_at === null ? undefined : Number(counts.first_due_at);
    const firstInMs = Math.min((firstDueAt ?? Infinity) - now, appointments.firstOf(topic) - wall);
    return {
      ready,
      delayed,
      behind,
      held: number(held, topic) + heldInQueue,
      leased: number(leased, topic),
      suspect,
      blocking: Number(blocked),
      oldestReadyMs: firstDueAt === undefined ? 0 : Math.max(0, now - firstDueAt),
      nextDueInMs: firstDueAt === undefined ? undefined : Math.max(0, firstInMs),
    };
  }

  function number(statement: typeof held, topic: Topic): number {
    return Number(statement.get(topic.id)?.count);
  }

  function countLeasedFollowers(topic: Topic): number {
    return leasesOfTopic.all(topic.id).reduce((sum, { id: leaseId, seqs }) => {
      const all = JSON.stringify(decodeSeqs(String(seqs)));
      return sum + Number(leasedFollowers.get(all, leaseId!)?.count);
    }, 0);
  }

  /**
   * Returns the latest lease of each sequence number, with its owner. That lease is valid only if its id is above the
   * event's `fence`.
   */
  function leasesOf(topic: Topic): Map<number, { leaseId: number; owner: string }> {
    const found = new Map<number, { leaseId: number; owner: string }>();
    for (const { id: leaseId, owner, seqs } of leasesOfTopic.all(topic.id)) {
      const lease = { leaseId: Number(leaseId), owner: String(owner) };
      for (const seq of decodeSeqs(String(seqs)))
        if ((found.get(seq)?.leaseId ?? 0) < lease.leaseId) found.set(seq, lease);
    }
    return found;
  }

  function stateOf(row: Row, isLeased: boolean, topicControls: TopicControls, now: number): WaitingState {
    if (row.blocking === 1) return 'blocking';
    if (isLeased) return 'leased';
    if (row.is_follower === 1) return 'behind';
    if (topicControls.holder(row.tenant as string | null, row.key as string | null) !== undefined)
      return 'held';
    if (Number(row.deaths) > 0) return 'suspect';
    return Number(row.due_at) > now ? 'delayed' : 'ready';
  }

  return {
    counts(name: string): TopicCounts {
      return store.read((now, wall) => countsOf(topics.open(name), board.controlsFor(name), { now, wall }));
    },

    waiting(name: string, { limit, cursor }: PageRequest): Page<Waiting> {
      return store.read((now, wall) => {
        const topic = topics.open(name);
        const topicControls = board.controlsFor(name);
        const { from, to } = seqsOf(topic);
        const rows = page.all(cursor === undefined ? from : numberIn(cursor), to, limit + 1);
        const shown = rows.slice(0, limit);
        const last = shown.at(-1);
        if (!last) return { items: [], cursor: undefined };
        const leases = leasesOf(topic);
        const items = shown.map((row) => {
          const { id, type, key, tenant, firstSeenAt } = toEnvelope(row, name, wall - now);
          const lease = leases.get(Number(row.seq));
          const owner = lease && lease.leaseId > Number(row.fence) ? lease.owner : undefined;
          const state = stateOf(row, owner !== undefined, topicControls, now);
          return {
            id,
            type,
            key,
            tenant,
            firstSeenAt,
            ...toTrials(row),
            state,
            dueAt: appointments.of(Number(row.seq)) ?? toStoredMs(Number(row.due_at) + wall - now),
            owner,
          };
        });
        return { items, cursor: rows.length > limit ? String(last.seq) : undefined };
      });
    },

    /** Makes a delayed event due now. Call it within a transaction. */
    retryNow(name: string, id: string, now: number): boolean {
      const topic = topics.open(name);
      const row = find.get(id, topic.id);
      if (!row || row.blocking === 1 || Number(row.due_at) <= now) return false;
      if ((leasesOf(topic).get(Number(row.seq))?.leaseId ?? 0) > Number(row.fence)) return false;
      appointments.makeDue(topic.id, Number(row.seq), Number(row.due_at), now);
      bells.ringAfterCommit(name);
      return true;
    },

    /**
     * Removes a parked event that blocks its key from the queue, so that the later events of the key can run. Call it
     * within a transaction.
     */
    unblock(name: string, id: string): boolean {
      const topic = topics.open(name);
      const row = find.get(id, topic.id);
      if (row?.blocking !== 1) return false;
      remove.run(row.seq!);
      keyOrder.promote({ topic, seqs: new Map([[String(row.order_key), Number(row.seq)]]) });
      bells.ringAfterCommit(name);
      return true;
    },

    history(name: string, { limit, cursor, from = 0, to }: HistoryRange): Page<SettledEvent> {
      return store.read((now, wall) => {
        const topic = topics.open(name);
        const span = seqsOf(topic);
        const after = cursor === undefined ? span.from : numberIn(cursor);
        const rows = settled.all(after, span.to, now, from, to ?? Number.MAX_SAFE_INTEGER, limit + 1);
        const shown = rows.slice(0, limit);
        return {
          items: shown.map((row) => ({
            ...toEnvelope(row, name, wall - now),
            how: row.how as SettledEvent['how'],
            settledAt: Number(row.settled_at),
          })),
          cursor: rows.length > limit ? String(shown.at(-1)?.seq) : undefined,
        };
      });
    },
  };
}
