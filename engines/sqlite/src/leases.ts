import type { Delivery, Lease, Leased, LeaseRequest } from '@holdfast/contracts';
import type { ControlBoard, Orders } from './controls.ts';
import type { Doorbells } from './doorbells.ts';
import { type EventRow, eventColumns, fromToken, toDelivery } from './event-row.ts';
import { isHead, moment } from './publisher.ts';
import type { Store } from './store.ts';
import { nextCountSql, type Topic, type Topics } from './topics.ts';

/** What is given at once at most, so that a transaction stays short. */
const leaseMax = 1000;
/** Leases of the dead that one transaction takes back. */
const endedTogether = 16;
/** Events that one lease sets aside because of a quarantine. */
const heldTogether = 1000;

const firstTries = 0;
const retries = 1;
const suspects = 2;

/** Who has what in hand, and until when. */
export function leases(store: Store, topics: Topics, board: ControlBoard, bells: Doorbells) {
  const line = store.prepareRows(`
    SELECT ${eventColumns} FROM holdfast_line line
    CROSS JOIN holdfast_event event ON event.seq = line.seq LEFT JOIN holdfast_trial trial ON trial.seq = event.seq
    WHERE line.topic = ? AND line.line = ? AND line.due_at <= ? ORDER BY line.due_at, line.seq LIMIT ?`);
  const followers = store.prepareRows(`
    SELECT ${eventColumns}, event.hand, event.blocking
    FROM holdfast_event event LEFT JOIN holdfast_trial trial ON trial.seq = event.seq
    WHERE event.topic = ? AND event.lane = ? AND event.seq > ? ORDER BY event.seq LIMIT ?`);
  const firstDue = store.prepare(
    'SELECT due_at FROM holdfast_line WHERE topic = ? AND line = ? ORDER BY due_at LIMIT 1',
  );
  const leave = store.prepare(
    'DELETE FROM holdfast_line WHERE topic = ? AND line = ? AND (due_at, seq) <= (?, ?)',
  );
  const leaveOne = store.prepare(
    'DELETE FROM holdfast_line WHERE topic = ? AND line = ? AND due_at = ? AND seq = ?',
  );
  const hold = store.prepare('INSERT INTO holdfast_held VALUES (?, ?, ?)');
  const count = store.prepare(nextCountSql);
  const begin = store.prepare(`
    INSERT INTO holdfast_lease (n, topic, owner, ends_at, look_at, in_hand, seqs) VALUES (?, ?, ?, ?, ?, ?, ?)`);
  const takeFollowers = store.prepare(
    'UPDATE holdfast_event SET hand = ? WHERE seq IN (SELECT value FROM json_each(?))',
  );

  const lease = store.prepare('SELECT * FROM holdfast_lease WHERE n = ?');
  const firstLook = store.prepare('SELECT min(look_at) AS look_at FROM holdfast_lease');
  const overdue = store.prepare(
    'SELECT n, topic, ends_at, seqs FROM holdfast_lease WHERE look_at <= ? ORDER BY look_at LIMIT ?',
  );
  const takeBack = store.prepare(`
    UPDATE holdfast_event SET deaths = deaths + 1, fence = ?1, hand = NULL, kept_until = NULL
    WHERE seq IN (SELECT value FROM json_each(?2)) AND fence < ?1 AND coalesce(kept_until, ?3) <= ?4 RETURNING seq`);
  const lineUpSuspects = store.prepare(`
    INSERT INTO holdfast_line SELECT topic, ${suspects}, due_at, seq FROM holdfast_event event
    WHERE seq IN (SELECT value FROM json_each(?)) AND ${isHead}`);
  const stillInHand = store.prepare(`
    SELECT count(*) AS count, min(coalesce(kept_until, ?1)) AS look_at FROM holdfast_event
    WHERE seq IN (SELECT value FROM json_each(?2)) AND fence < ?3`);
  const lookAgain = store.prepare('UPDATE holdfast_lease SET look_at = ?, in_hand = ? WHERE n = ?');
  const end = store.prepare('DELETE FROM holdfast_lease WHERE n = ?');
  const endIfLast = store.prepare('DELETE FROM holdfast_lease WHERE n = ? AND in_hand <= ?');
  const fewer = store.prepare('UPDATE holdfast_lease SET in_hand = in_hand - ? WHERE n = ?');
  const prolong = store.prepare('UPDATE holdfast_lease SET ends_at = ?2, look_at = ?2 WHERE n = ?1');
  const prolongOne = store.prepare(`
    UPDATE holdfast_event SET kept_until = ?1
    WHERE seq = ?2 AND fence < ?3 AND coalesce(kept_until, ?4) > ?5`);
  const noteKept = store.prepare(
    'UPDATE holdfast_lease SET has_kept = 1, look_at = min(look_at, ?) WHERE n = ?',
  );

  /** What is due in a line, without what is under quarantine: that is set aside on the way. */
  function due(topic: Topic, orders: Orders, which: number, until: number, limit: number): EventRow[] {
    const hasQuarantine = orders.tenants.size + orders.keys.size > 0;
    for (let setAside = 0; ; ) {
      const rows = line.all(topic.id, which, until, limit) as unknown as EventRow[];
      if (!hasQuarantine) return rows;
      const free = rows.filter(([seq, , , , key, tenant, , , , , , , , , dueAt]) => {
        const control = orders.holder(tenant, key);
        if (control === undefined) return true;
        hold.run(control, seq, topic.id);
        leaveOne.run(topic.id, which, dueAt, seq);
        setAside += 1;
        return false;
      });
      if (free.length === rows.length || setAside >= heldTogether) return free;
    }
  }

  /** The head and what may follow it in the same hand. */
  function runOf(head: EventRow, topic: Topic, orders: Orders, runMax: number, now: number): EventRow[] {
    const lane = head[13];
    if (lane === null || runMax <= 1) return [head];
    const run = [head];
    for (const row of followers.all(topic.id, lane, head[0], runMax - 1) as unknown as EventRow[]) {
      const [, , , , key, tenant, , , , , , , , , dueAt, , , deaths] = row;
      const [hand, blocking] = (row as unknown[]).slice(-2);
      // The first that cannot run ends it: what is after it may not overtake.
      if (hand !== null || blocking === 1 || deaths > 0 || dueAt > now || orders.holder(tenant, key)) break;
      run.push(row);
    }
    return run;
  }

  function choose(topic: Topic, orders: Orders, request: LeaseRequest, limit: number, now: number) {
    const { retriesShare, runMax = 1 } = request;
    const first = due(topic, orders, firstTries, now, limit);
    const again = due(topic, orders, retries, now, limit);
    const heads = inOrder(first, again, retriesShare === undefined ? undefined : { limit, retriesShare });
    const chosen: EventRow[] = [];
    const followed: number[] = [];
    const taken = new Map<number, EventRow>();
    for (const head of heads) {
      if (chosen.length >= limit) break;
      const run = runOf(head, topic, orders, Math.min(runMax, limit - chosen.length), now);
      for (const [seq] of run.slice(1)) followed.push(seq);
      chosen.push(...run);
      taken.set(head[15] > 0 ? retries : firstTries, head);
    }
    // Each line gives from its beginning, so that one range is all there is to remove.
    for (const [which, last] of taken) leave.run(topic.id, which, last[14], last[0]);
    return { chosen, followed };
  }

  function chooseSuspect(topic: Topic, orders: Orders) {
    const chosen = due(topic, orders, suspects, Number.MAX_SAFE_INTEGER, 1);
    for (const row of chosen) leaveOne.run(topic.id, suspects, row[14], row[0]);
    return { chosen, followed: [] as number[] };
  }

  function handOut(topic: Topic, request: LeaseRequest, orders: Orders, now: number): Delivery[] {
    const limit = Math.min(request.limit, leaseMax);
    if (limit < 1) return [];
    const { chosen, followed } = request.suspects
      ? chooseSuspect(topic, orders)
      : choose(topic, orders, request, limit, now);
    if (chosen.length === 0) return [];
    const n = Number(count.get(1)?.last);
    const endsAt = moment(now + request.leaseMs);
    const seqs = JSON.stringify(chosen.map(([seq]) => seq));
    begin.run(n, topic.id, request.owner, endsAt, endsAt, chosen.length, seqs);
    if (followed.length > 0) takeFollowers.run(n, JSON.stringify(followed));
    return chosen.map((row) => toDelivery(row, topic.name, n, now));
  }

  function answer(
    topic: Topic,
    deliveries: Delivery[],
    isPaused: boolean,
    limit: number,
    now: number,
  ): Leased {
    const nextDueInMs = isPaused || deliveries.length >= limit ? undefined : nextDue(topic, now);
    return {
      deliveries,
      suspects: firstDue.get(topic.id, suspects) ? 1 : 0,
      nextDueInMs,
      controlsVersion: board.version(),
    };
  }

  function nextDue(topic: Topic, now: number): number | undefined {
    const dueAts = [firstTries, retries].flatMap((which) => firstDue.get(topic.id, which)?.due_at ?? []);
    return dueAts.length === 0 ? undefined : Math.max(0, Math.min(...dueAts.map(Number)) - now);
  }

  function hasEnded(now: number): boolean {
    const { look_at } = firstLook.get() ?? {};
    return look_at !== null && Number(look_at) <= now;
  }

  /** Within a transaction: what the dead had in hand is suspect now. */
  function endOverdue(now: number): void {
    for (const { n, topic, ends_at, seqs } of overdue.all(now, endedTogether)) {
      const ended = takeBack.all(n!, seqs!, ends_at!, now).map(({ seq }) => Number(seq));
      lineUpSuspects.run(JSON.stringify(ended));
      const { count: left, look_at } = stillInHand.get(ends_at!, seqs!, n!) ?? {};
      if (left === 0) end.run(n!);
      else lookAgain.run(look_at!, left!, n!);
      if (ended.length > 0) bells.ringAfterCommit(topics.nameOf(Number(topic)));
    }
  }

  function isBehind(now: number): boolean {
    return hasEnded(now) || board.isBehind(now);
  }

  /** Within a transaction: a bounded part of what time has brought. */
  function catchUp(now: number): void {
    endOverdue(now);
    board.catchUp(now);
  }

  return {
    /** Ends what time has ended, leases and controls: what is read after that need not think of it. */
    async catchUp(): Promise<void> {
      while (isBehind(store.now())) await store.write(catchUp);
    },

    async lease(name: string, request: LeaseRequest): Promise<Leased> {
      const now = store.now();
      const topic = topics.open(name);
      // Most looks find nothing, and reading is free: no lock is taken, and no other process is rung for it.
      const isAsked = request.limit > 0 && !board.ordersFor(name).isPaused;
      const hasWork = request.suspects
        ? firstDue.get(topic.id, suspects) !== undefined
        : nextDue(topic, now) === 0;
      if (!(isAsked && hasWork) && !isBehind(now)) {
        return answer(topic, [], board.ordersFor(name).isPaused, request.limit, now);
      }
      return store.write((then) => {
        catchUp(then);
        const orders = board.ordersFor(name);
        const open = topics.open(name);
        const deliveries = orders.isPaused ? [] : handOut(open, request, orders, then);
        return answer(open, deliveries, orders.isPaused, request.limit, then);
      });
    },

    async extend(batch: readonly Lease[], leaseMs: number): Promise<boolean[]> {
      return store.write((now) => {
        const until = moment(now + leaseMs);
        const answers: boolean[] = new Array(batch.length).fill(false);
        const groups = Map.groupBy(batch.keys(), (index) => fromToken(batch[index]!.token)?.n);
        for (const [n, indexes] of groups) {
          const row = n === undefined ? undefined : lease.get(n);
          if (!row) continue;
          const seqs = indexes.map((index) => fromToken(batch[index]!.token)!.seq);
          const isWhole = row.has_kept === 0 && Number(row.ends_at) > now && seqs.length === row.in_hand;
          if (isWhole && stillInHand.get(0, JSON.stringify(seqs), n!)?.count === row.in_hand) {
            prolong.run(n!, until);
            for (const index of indexes) answers[index] = true;
            continue;
          }
          for (const [at, index] of indexes.entries()) {
            answers[index] = prolongOne.run(until, seqs[at]!, n!, row.ends_at!, now).changes === 1;
          }
          if (indexes.some((index) => answers[index])) noteKept.run(until, n!);
        }
        return answers;
      });
    },

    /** Within a transaction: so many of a lease are settled. */
    settled(n: number, count: number): void {
      if (endIfLast.run(n, count).changes === 0) fewer.run(count, n);
    },
  };
}

export type Leases = ReturnType<typeof leases>;

/** Oldest due first; or, when both would not fit, retries and first tries each in their part of `limit`. */
function inOrder(
  first: EventRow[],
  again: EventRow[],
  share: { limit: number; retriesShare: number } | undefined,
): EventRow[] {
  if (again.length === 0) return first;
  if (first.length === 0) return again;
  let [firsts, retried] = [first, again];
  // One place cannot be shared: it goes to the oldest.
  if (share && share.limit > 1 && first.length + again.length > share.limit) {
    const { limit, retriesShare } = share;
    const own = Math.min(limit - 1, Math.max(1, Math.floor(limit * retriesShare)));
    const places = Math.min(again.length, Math.max(own, limit - first.length));
    [firsts, retried] = [first.slice(0, limit - places), again.slice(0, places)];
  }
  return [...firsts, ...retried].sort((a, b) => a[14] - b[14] || a[0] - b[0]);
}
