import type { Delivery, Lease, Leased, LeaseRequest } from '@holdfast/contracts';
import type { Appointments } from './appointments.ts';
import type { ControlBoard, TopicControls } from './controls.ts';
import type { Doorbells } from './doorbells.ts';
import {
  at,
  type EventRow,
  eventColumns,
  fromToken,
  mayHaveTrials,
  type TrialRow,
  toDelivery,
  trialColumns,
  trialsIn,
} from './event-row.ts';
import { firstTries, isHead, retries, suspects } from './ready-queue.ts';
import { decodeSeqs, encodeSeqs } from './run-length-seqs.ts';
import type { Store } from './store.ts';
import type { Time } from './store-clock.ts';
import { toStoredMs } from './stored-time.ts';
import { type TopicSnapshot, topicSnapshots } from './topic-snapshot.ts';
import type { Topic, Topics } from './topics.ts';

const leaseMax = 1000;
/** How many events one statement reads before their sizes are added up. */
const readTogether = 64;
const endedTogether = 16;
const heldTogether = 1000;

const untried: ReadonlyMap<number, TrialRow> = new Map();

export function leases(
  store: Store,
  topics: Topics,
  board: ControlBoard,
  appointments: Appointments,
  bells: Doorbells,
) {
  const dueOf = (columns: string) =>
    store.prepareRows(`
    SELECT ${columns} FROM holdfast_ready ready
    CROSS JOIN holdfast_event event ON event.seq = ready.seq
    WHERE ready.topic = ? AND ready.queue = ? AND ready.due_at <= ? AND (ready.due_at, ready.seq) > (?, ?)
    ORDER BY ready.due_at, ready.seq LIMIT ? + 0`);
  // An event that was not tried yet has no attempts, so fewer columns are read for it.
  const [readUntried, readTried] = [dueOf(eventColumns), dueOf(`${eventColumns}, ${trialColumns}`)];
  // Reads the later events of a key. `ends_run` = 1: this event cannot run now, and the events after it must
  // not overtake it.
  const followers = store.prepareRows(`
    SELECT ${eventColumns},
      event.lease_id IS NOT NULL OR event.blocking = 1 OR event.deaths > 0 OR event.due_at > ?5 AS ends_run
    FROM holdfast_event event WHERE event.topic = ?1 AND event.order_key = ?2 AND event.seq > ?3
    ORDER BY event.seq LIMIT ?4 + 0`);
  const trials = store.prepareRows(`
    SELECT event.seq, ${trialColumns} FROM json_each(?) each
    CROSS JOIN holdfast_event event ON event.seq = each.value`);
  const snapshotOf = topicSnapshots(store, board);
  const isOverdue = store.prepare('SELECT 1 FROM holdfast_lease WHERE check_at <= ? LIMIT 1');
  const dequeue = store.prepare(
    'DELETE FROM holdfast_ready WHERE topic = ? AND queue = ? AND (due_at, seq) <= (?, ?)',
  );
  const dequeueOne = store.prepare(
    'DELETE FROM holdfast_ready WHERE topic = ? AND queue = ? AND due_at = ? AND seq = ?',
  );
  const hold = store.prepare('INSERT INTO holdfast_held VALUES (?, ?, ?)');
  const begin = store.prepare(`
    INSERT INTO holdfast_lease (id, topic, owner, ends_at, check_at, unsettled, has_followers, seqs)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
  const holdFollowers = store.prepare(`
    UPDATE holdfast_event SET lease_id = ?1
    WHERE seq IN (SELECT value FROM json_each(?2)) AND fence < ?1 AND order_key IS NOT NULL`);

  const lease = store.prepare('SELECT * FROM holdfast_lease WHERE id = ?');
  const overdue = store.prepare(
    'SELECT id, topic, ends_at, has_followers, seqs FROM holdfast_lease WHERE check_at <= ? ORDER BY check_at LIMIT ? + 0',
  );
  const takeBack = store.prepare(`
    UPDATE holdfast_event SET deaths = deaths + 1, fence = ?1, lease_id = NULL, extended_until = NULL
    WHERE seq IN (SELECT value FROM json_each(?2)) AND fence < ?1 AND coalesce(extended_until, ?3) <= ?4 RETURNING seq`);
  const enqueueSuspects = store.prepare(`
    INSERT INTO holdfast_ready SELECT topic, ${suspects}, due_at, seq FROM holdfast_event event
    WHERE seq IN (SELECT value FROM json_each(?)) AND ${isHead}`);
  const countUnsettled = store.prepare(`
    SELECT count(*) AS count, min(coalesce(extended_until, ?1)) AS check_at FROM holdfast_event
    WHERE seq IN (SELECT value FROM json_each(?2)) AND fence < ?3`);
  const lookAgain = store.prepare('UPDATE holdfast_lease SET check_at = ?, unsettled = ? WHERE id = ?');
  const end = store.prepare('DELETE FROM holdfast_lease WHERE id = ?');
  const endIfLast = store.prepare('DELETE FROM holdfast_lease WHERE id = ? AND unsettled <= ?');
  const fewer = store.prepare('UPDATE holdfast_lease SET unsettled = unsettled - ? WHERE id = ?');
  const prolong = store.prepare('UPDATE holdfast_lease SET ends_at = ?2, check_at = ?2 WHERE id = ?1');
  const prolongOne = store.prepare(`
    UPDATE holdfast_event SET extended_until = ?1
    WHERE seq = ?2 AND fence < ?3 AND coalesce(extended_until, ?4) > ?5`);
  const noteExtended = store.prepare(
    'UPDATE holdfast_lease SET has_extended = 1, check_at = min(check_at, ?) WHERE id = ?',
  );

  /** Topics whose last lease was full. Their next lease skips the check for due events. */
  const busy = new Set<string>();

  /** Reads due events of one queue. Quarantined events are moved to `holdfast_held`. */
  function due(
    topic: Topic,
    topicControls: TopicControls,
    which: number,
    until: number,
    limit: number,
    bytesMax: number,
  ): EventRow[] {
    const hasQuarantine = topicControls.tenants.size + topicControls.keys.size > 0;
    const statement = which === firstTries ? readUntried : readTried;
    for (let setAside = 0; ; ) {
      const rows = inParts(limit, bytesMax, (count, last) => {
        const from = last ? [last[at.dueAt], last[at.seq]] : [-1, -1];
        return statement.all(topic.id, which, until, ...from, count) as unknown as EventRow[];
      });
      if (!hasQuarantine) return rows;
      const free = rows.filter((row) => {
        const control = topicControls.holder(row[at.tenant], row[at.key]);
        if (control === undefined) return true;
        hold.run(control, row[at.seq], topic.id);
        dequeueOne.run(topic.id, which, row[at.dueAt], row[at.seq]);
        setAside += 1;
        return false;
      });
      if (free.length === rows.length || setAside >= heldTogether) return free;
    }
  }

  /** Returns the later events of the same key that may be leased together with `head`. */
  function followersOf(
    head: EventRow,
    orderKey: string,
    topic: Topic,
    topicControls: TopicControls,
    max: number,
    now: number,
    bytesMax: number,
  ) {
    const rows = inParts(max, bytesMax, (count, last = head) => {
      return followers.all(topic.id, orderKey, last[at.seq], count, now) as unknown as EventRow[];
    });
    const end = rows.findIndex((row) => {
      const endsRun = (row as unknown[])[at.tried + 1] === 1;
      const waits = topicControls.retriesArePaused && row[at.tried] > 0;
      return endsRun || waits || topicControls.holder(row[at.tenant], row[at.key]) !== undefined;
    });
    return end < 0 ? rows : rows.slice(0, end);
  }

  function trialsOf(rows: readonly EventRow[]): ReadonlyMap<number, TrialRow> {
    const tried = rows.filter(mayHaveTrials);
    if (tried.length === 0) return untried;
    const found = new Map<number, TrialRow>();
    const unread: number[] = [];
    for (const row of tried) {
      const read = trialsIn(row);
      if (read) found.set(row[at.seq], read);
      else unread.push(row[at.seq]);
    }
    if (unread.length === 0) return found;
    const rest = trials.all(JSON.stringify(unread)) as unknown as [seq: number, ...TrialRow][];
    for (const [seq, ...read] of rest) found.set(seq, read);
    return found;
  }

  /**
   * Reads due first tries and retries. `retriesShare` of `limit` is for retries; unused room goes to the
   * other kind.
   */
  function dueOfBoth(
    topic: Topic,
    topicControls: TopicControls,
    request: LeaseRequest,
    limit: number,
    now: number,
  ) {
    const { retriesShare, bytesMax = Infinity } = request;
    if (topicControls.retriesArePaused)
      return { first: due(topic, topicControls, firstTries, now, limit, bytesMax), again: [] };
    if (retriesShare === undefined || limit === 1) {
      const first = due(topic, topicControls, firstTries, now, limit, bytesMax);
      return { first, again: due(topic, topicControls, retries, now, limit, bytesMax) };
    }
    const own = Math.min(limit - 1, Math.max(1, Math.floor(limit * retriesShare)));
    const again = due(topic, topicControls, retries, now, own, bytesMax);
    const first = due(topic, topicControls, firstTries, now, limit - again.length, bytesMax);
    if (again.length < own || first.length === limit - own) return { first, again };
    return { first, again: due(topic, topicControls, retries, now, limit - first.length, bytesMax) };
  }

  function choose(
    topic: Topic,
    topicControls: TopicControls,
    request: LeaseRequest,
    limit: number,
    now: number,
  ) {
    const { runMax = 1, bytesMax = Infinity } = request;
    const { first, again } = dueOfBoth(topic, topicControls, request, limit, now);
    const retried = new Set(again);
    const heads = inOrder(first, again);
    const isRun = topic.ordering === 'key' && runMax > 1;
    // A retried event may have lost its order key (`holdsKey: false`), so read its key from the trial
    // columns.
    const past = isRun ? trialsOf(heads) : untried;
    const chosen: EventRow[] = [];
    let hasFollowers = false;
    let bytes = 0;
    const taken: (EventRow | undefined)[] = [undefined, undefined];
    for (const head of heads) {
      if (chosen.length >= limit || (chosen.length > 0 && bytes + sizeOf(head) > bytesMax)) break;
      chosen.push(head);
      bytes += sizeOf(head);
      taken[retried.has(head) ? retries : firstTries] = head;
      const tried = past.get(head[at.seq]);
      const orderKey = tried ? tried[0] : head[at.key];
      if (!isRun || typeof orderKey !== 'string' || chosen.length >= limit) continue;
      const max = Math.min(runMax, limit - chosen.length + 1) - 1;
      for (const row of followersOf(head, orderKey, topic, topicControls, max, now, bytesMax)) {
        if (bytes + sizeOf(row) > bytesMax) break;
        chosen.push(row);
        bytes += sizeOf(row);
        hasFollowers = true;
      }
    }
    // The chosen events are the first of their queue, so one DELETE of a range removes them.
    for (const [which, last] of taken.entries()) {
      if (last) dequeue.run(topic.id, which, last[at.dueAt], last[at.seq]);
    }
    return { chosen, hasFollowers };
  }

  function chooseSuspect(topic: Topic, topicControls: TopicControls) {
    const chosen: EventRow[] = topicControls.retriesArePaused
      ? []
      : due(topic, topicControls, suspects, Number.MAX_SAFE_INTEGER, 1, Infinity);
    for (const row of chosen) dequeueOne.run(topic.id, suspects, row[at.dueAt], row[at.seq]);
    return { chosen, hasFollowers: false };
  }

  function leaseDue(
    topic: Topic,
    request: LeaseRequest,
    topicControls: TopicControls,
    time: Time,
  ): Delivery[] {
    const { now } = time;
    const limit = Math.min(request.limit, leaseMax);
    if (limit < 1) return [];
    const { chosen, hasFollowers } = request.suspects
      ? chooseSuspect(topic, topicControls)
      : choose(topic, topicControls, request, limit, now);
    if (chosen.length === 0) return [];
    const leaseId = store.sequence.take(1);
    const endsAt = toStoredMs(now + request.leaseMs);
    const seqs = encodeSeqs(chosen.map((row) => row[at.seq]));
    begin.run(leaseId, topic.id, request.owner, endsAt, endsAt, chosen.length, hasFollowers ? 1 : 0, seqs);
    const past = trialsOf(chosen);
    return chosen.map((row) => toDelivery(row, topic.name, leaseId, time, past.get(row[at.seq])));
  }

  function answer(
    { topicControls, suspects, nextDueInMs, version }: TopicSnapshot,
    deliveries: Delivery[],
    limit: number,
  ): Leased {
    const isKnown = !topicControls.isPaused && deliveries.length < limit;
    const next = isKnown ? nextDueInMs : undefined;
    return { deliveries, suspects, nextDueInMs: next, controlsVersion: version };
  }

  /** Ends expired leases. Their events become suspects, because one of them may have crashed the worker. */
  function endOverdue(now: number): void {
    for (const { id: leaseId, topic, ends_at, has_followers, seqs } of overdue.all(now, endedTogether)) {
      const all = JSON.stringify(decodeSeqs(String(seqs)));
      const ended = takeBack.all(leaseId!, all, ends_at!, now).map(({ seq }) => Number(seq));
      enqueueSuspects.run(JSON.stringify(ended));
      const { count: left, check_at } = countUnsettled.get(ends_at!, all, leaseId!) ?? {};
      if (left === 0) end.run(leaseId!);
      else lookAgain.run(check_at!, left!, leaseId!);
      if (left !== 0 && has_followers === 1) holdFollowers.run(leaseId!, all);
      if (ended.length > 0) bells.ringAfterCommit(topics.nameOf(Number(topic)));
    }
  }

  /**
   * Ends expired leases and controls, and makes events due whose wall-clock time has come. One call handles a
   * limited number of them, so that the transaction is short.
   */
  function catchUp(time: Time): void {
    endOverdue(time.now);
    appointments.catchUp(time);
    board.catchUp(time.now);
  }

  return {
    /** Repeats `catchUp` in short transactions until nothing is left to do. */
    async catchUp(): Promise<void> {
      const needsCatchUp = (now: number, wall: number) =>
        isOverdue.get(now) !== undefined || appointments.haveCome(wall) || board.state(now).needsCatchUp;
      while (store.look(needsCatchUp)) await store.write((now, wall) => catchUp({ now, wall }));
    },

    async lease(name: string, request: LeaseRequest): Promise<Leased> {
      const { limit, suspects: wantsSuspect = false } = request;
      // Most polls find no event. So read first, without a write lock.
      if (!busy.has(name)) {
        const seen = store.look((now, wall) => snapshotOf(name, { now, wall }));
        const hasWork = wantsSuspect ? seen.suspects > 0 : seen.nextDueInMs === 0;
        const isAsked = limit > 0 && !seen.topicControls.isPaused;
        if (!(isAsked && hasWork) && !seen.needsCatchUp) return answer(seen, [], limit);
      }
      return store.write((now, wall) => {
        const then = { now, wall };
        let seen = snapshotOf(name, then);
        if (seen.needsCatchUp) {
          catchUp(then);
          seen = snapshotOf(name, then);
        }
        const deliveries = seen.topicControls.isPaused
          ? []
          : leaseDue(seen.topic, request, seen.topicControls, then);
        if (deliveries.length >= limit) busy.add(name);
        else busy.delete(name);
        return answer(deliveries.length === 0 ? seen : snapshotOf(name, then), deliveries, limit);
      });
    },

    async extend(batch: readonly Lease[], leaseMs: number): Promise<boolean[]> {
      return store.write((now) => {
        const until = toStoredMs(now + leaseMs);
        const answers: boolean[] = new Array(batch.length).fill(false);
        const groups = Map.groupBy(batch.keys(), (index) => fromToken(batch[index]!.token)?.leaseId);
        for (const [leaseId, given] of groups) {
          const row = leaseId === undefined ? undefined : lease.get(leaseId);
          if (!row) continue;
          const name = topics.nameOf(Number(row.topic));
          const indexes = given.filter((index) => batch[index]!.topic === name);
          const seqs = indexes.map((index) => fromToken(batch[index]!.token)!.seq);
          const isWhole =
            row.has_extended === 0 && Number(row.ends_at) > now && seqs.length === row.unsettled;
          if (isWhole && countUnsettled.get(0, JSON.stringify(seqs), leaseId!)?.count === row.unsettled) {
            prolong.run(leaseId!, until);
            for (const index of indexes) answers[index] = true;
            continue;
          }
          for (const [at, index] of indexes.entries()) {
            answers[index] = prolongOne.run(until, seqs[at]!, leaseId!, row.ends_at!, now).changes === 1;
          }
          if (indexes.some((index) => answers[index])) noteExtended.run(until, leaseId!);
        }
        return answers;
      });
    },

    /** Counts settled events of a lease. After its last event, the lease is deleted. */
    settled(leaseId: number, count: number): void {
      if (endIfLast.run(leaseId, count).changes === 0) fewer.run(count, leaseId);
    },
  };
}

export type Leases = ReturnType<typeof leases>;

/** Returns the size of the payload in bytes, or in characters if it is a text. */
function sizeOf(row: EventRow): number {
  return row[at.payload].length;
}

/** Reads rows until their sizes reach `bytesMax`, but at least one. Reading several at a time is faster. */
function inParts(
  limit: number,
  bytesMax: number,
  read: (count: number, last: EventRow | undefined) => EventRow[],
): EventRow[] {
  const rows: EventRow[] = [];
  for (let bytes = 0; ; ) {
    const count = Math.min(limit - rows.length, readTogether);
    const part = read(count, rows.at(-1));
    for (const row of part) {
      bytes += sizeOf(row);
      if (bytes > bytesMax && rows.length > 0) return rows;
      rows.push(row);
    }
    if (part.length < count || rows.length === limit) return rows;
  }
}

function inOrder(first: EventRow[], again: EventRow[]): EventRow[] {
  if (again.length === 0) return first;
  if (first.length === 0) return again;
  return [...first, ...again].sort((a, b) => a[at.dueAt] - b[at.dueAt] || a[at.seq] - b[at.seq]);
}
