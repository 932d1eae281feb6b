import {
  type HistoryRange,
  numberIn,
  type Page,
  type SettledEvent,
  type TopicCounts,
} from '@holdfast/contracts';
import type { Appointments } from './appointments.ts';
import type { ControlBoard, TopicControls } from './controls.ts';
import type { Doorbells } from './doorbells.ts';
import { toEnvelope } from './event-row.ts';
import type { KeyOrder } from './key-order.ts';
import type { LeaseIndex } from './lease-index.ts';
import { isHead } from './ready-queue.ts';
import type { Store } from './store.ts';
import type { Time } from './store-clock.ts';
import { seqsOf, type Topic, type Topics } from './topics.ts';

/** If counting the events of a topic takes more ms than this, the result is used again for a while. */
const slowCountMs = 50;
/**
 * A slow result is used for 20 times the duration of the count. So counting takes at most a twentieth of the
 * time.
 */
const reusedTimes = 20;

export function queueInspection(
  store: Store,
  topics: Topics,
  board: ControlBoard,
  appointments: Appointments,
  keyOrder: KeyOrder,
  bells: Doorbells,
  leases: LeaseIndex,
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
  const leasedFollowers = store.prepare(`
    SELECT count(*) AS count FROM json_each(?) each
    CROSS JOIN holdfast_event event ON event.seq = each.value WHERE event.fence < ? AND NOT ${isHead}`);
  const blocking = store.prepare(`
    SELECT count(*) AS count, count(*) FILTER (WHERE NOT ${isHead}) AS followers
    FROM holdfast_event event WHERE topic = ? AND blocking = 1`);

  const find = store.prepare('SELECT * FROM holdfast_event WHERE id = ? AND topic = ?');
  const remove = store.prepare('DELETE FROM holdfast_event WHERE seq = ?');
  const settled = store.prepare(`
    SELECT * FROM holdfast_settled
    WHERE seq > ? AND seq <= ? AND removed_at > ? AND first_seen_at >= ? AND first_seen_at < ? ORDER BY seq LIMIT ? + 0`);

  const slowCounts = new Map<string, { counts: TopicCounts; validUntil: number }>();

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
      asOf: wall,
    };
  }

  function number(statement: typeof held, topic: Topic): number {
    return Number(statement.get(topic.id)?.count);
  }

  function countLeasedFollowers(topic: Topic): number {
    return leases.all(topic).reduce((sum, { leaseId, seqs }) => {
      return sum + Number(leasedFollowers.get(JSON.stringify(seqs), leaseId)?.count);
    }, 0);
  }

  return {
    counts(name: string): TopicCounts {
      const startedAt = store.clock.now();
      const known = slowCounts.get(name);
      if (known && startedAt < known.validUntil) return known.counts;
      slowCounts.delete(name);
      const counts = store.read((now, wall) => {
        return countsOf(topics.open(name), board.controlsFor(name), { now, wall });
      });
      const endedAt = store.clock.now();
      const tookMs = endedAt - startedAt;
      if (tookMs > slowCountMs) slowCounts.set(name, { counts, validUntil: endedAt + reusedTimes * tookMs });
      return counts;
    },

    retryNow(name: string, id: string, now: number): boolean {
      const topic = topics.open(name);
      const row = find.get(id, topic.id);
      if (!row || row.blocking === 1 || Number(row.due_at) <= now) return false;
      if ((leases.of(topic).get(Number(row.seq))?.leaseId ?? 0) > Number(row.fence)) return false;
      appointments.makeDue(topic.id, Number(row.seq), Number(row.due_at), now);
      bells.ringAfterCommit(name);
      return true;
    },

    /** Removes a parked event from the queue, so that later events of its key can run. */
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
