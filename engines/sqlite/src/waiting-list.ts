import {
  numberIn,
  type Page,
  type PageRequest,
  type Place,
  placeIn,
  type Waiting,
  type WaitingQuestion,
  type WaitingState,
} from '@holdfast/contracts';
import { later } from 'holdfast';
import type { ControlBoard, TopicControls } from './controls.ts';
import { toEnvelope, toTrials } from './event-row.ts';
import type { LeaseIndex } from './lease-index.ts';
import { firstTries, isHead, retries, suspects } from './ready-queue.ts';
import type { Store } from './store.ts';
import type { Time } from './store-clock.ts';
import { never, toStoredMs } from './stored-time.ts';
import { seqsOf, type Topic, type Topics } from './topics.ts';

interface Waiter {
  readonly seq: number;
  readonly key: string | null;
  readonly tenant: string | null;
  readonly dueAt: number;
  readonly state: WaitingState;
  readonly owner: string | undefined;
}

type WaiterRow = [
  seq: number,
  key: string | null,
  tenant: string | null,
  dueAt: number,
  wallDueAt: number | null,
  deaths: number,
  fence: number,
  isBlocking: number,
  isFollower: number,
];

type Matcher = (waiter: Waiter) => boolean;

/** Reads at most `count` rows after the event `last`; `undefined`: from the beginning. */
type ReadRows = (topic: Topic, last: Waiter | undefined, count: number, time: Time) => WaiterRow[];

/** How many events one transaction reads. The event loop runs other work between two transactions. */
const readTogether = 2000;

/** Few events are in these states, and they can be found without reading the whole queue. */
const rareStates: readonly WaitingState[] = ['leased', 'blocking', 'suspect'];
/** The ready queue has the events of these states, in the order of their due times. */
const queuedStates: readonly WaitingState[] = ['ready', 'delayed', 'suspect'];

export class WaitingList {
  readonly #store: Store;
  readonly #topics: Topics;
  readonly #board: ControlBoard;
  readonly #leases: LeaseIndex;
  readonly #published;
  readonly #listed;
  readonly #queued;
  readonly #suspects;
  readonly #blocking;
  readonly #dueBetween;
  readonly #readyCount;
  readonly #isAnyHeld;
  readonly #full;

  constructor(store: Store, topics: Topics, board: ControlBoard, leases: LeaseIndex) {
    this.#store = store;
    this.#topics = topics;
    this.#board = board;
    this.#leases = leases;
    const rowsOf = (events: string) => `
      SELECT event.seq, event.key, event.tenant, event.due_at, wall_due_at, deaths, fence, blocking, NOT ${isHead}
      FROM ${events} LEFT JOIN holdfast_appointment appointment ON appointment.seq = event.seq`;
    this.#published = store.prepareRows(`
      ${rowsOf('holdfast_event event')} WHERE event.seq > ? AND event.seq <= ? ORDER BY event.seq LIMIT ? + 0`);
    this.#listed = store.prepareRows(
      `${rowsOf('json_each(?) each CROSS JOIN holdfast_event event ON event.seq = each.value')} LIMIT ? + 0`,
    );
    // ?1: the topic. ?2 and ?3: due time and number of the last event. ?4: how many ms the wall clock is
    // ahead. ?5: how many.
    const queued = [firstTries, retries, suspects].map(
      (queue) => `
        SELECT due_at, seq FROM holdfast_ready ready
        WHERE topic = ?1 AND queue = ${queue} AND (due_at, seq) > (?2, ?3) AND (
          due_at < ${never} OR NOT EXISTS (SELECT 1 FROM holdfast_appointment WHERE seq = ready.seq))`,
    );
    const appointed = `
      SELECT wall_due_at - ?4, seq FROM holdfast_appointment
      WHERE topic = ?1 AND wall_due_at >= ?2 + ?4 AND (wall_due_at - ?4, seq) > (?2, ?3)`;
    const first = `(${[...queued, appointed].join(' UNION ALL ')} ORDER BY 1, 2 LIMIT ?5 + 0) first`;
    this.#queued = store.prepareRows(`
      ${rowsOf(`${first} CROSS JOIN holdfast_event event ON event.seq = first.seq`)}
      ORDER BY first.due_at, first.seq`);
    this.#suspects = store.prepareRows(
      `SELECT seq FROM holdfast_ready WHERE topic = ? AND queue = ${suspects}`,
    );
    this.#blocking = store.prepareRows('SELECT seq FROM holdfast_event WHERE topic = ? AND blocking = 1');
    const ready = (queue: number) =>
      `(SELECT count(*) FROM holdfast_ready WHERE topic = ?1 AND queue = ${queue} AND due_at >= ?2 AND due_at < ?3)`;
    this.#dueBetween = store.prepare(`
      SELECT ${ready(firstTries)} + ${ready(retries)} + ${ready(suspects)} + (
        SELECT count(*) FROM holdfast_appointment
        WHERE topic = ?1 AND wall_due_at >= ?2 + ?4 AND wall_due_at < ?3 + ?4) AS count`);
    this.#readyCount = store.prepare('SELECT count(*) AS count FROM holdfast_ready WHERE topic = ?');
    this.#isAnyHeld = store.prepare('SELECT 1 FROM holdfast_held WHERE topic = ? LIMIT 1');
    this.#full = store.prepare(`
      SELECT event.* FROM json_each(?) each CROSS JOIN holdfast_event event ON event.seq = each.value`);
  }

  async page(name: string, request: PageRequest, question: WaitingQuestion): Promise<Page<Waiting>> {
    const { order, state } = question;
    const isAsked = matcherOf(question);
    const states = state === undefined ? [] : [state].flat();
    const isOf = (some: readonly WaitingState[]) =>
      states.length > 0 && states.every((each) => some.includes(each));
    const find = order === 'due' ? this.#firstDue : this.#firstPublished;
    let found: Waiter[];
    if (isOf(rareStates)) found = await find.call(this, name, request, isAsked, this.#readRare);
    else if (order === 'due' && isOf(queuedStates))
      found = await this.#firstQueued(name, request, isAsked, isOf(['delayed']));
    else found = await find.call(this, name, request, isAsked, this.#readPublished);
    const shown = found.slice(0, request.limit);
    const last = shown.at(-1);
    const isLast = found.length <= request.limit || last === undefined;
    const cursor = order === 'due' ? JSON.stringify(last && placeOf(last)) : String(last?.seq);
    return { items: this.#show(name, shown), cursor: isLast ? undefined : cursor };
  }

  async due(name: string, bounds: readonly number[]): Promise<number[]> {
    return (
      this.#store.read((now, wall) => this.#dueInQueue(name, bounds, { now, wall })) ??
      this.#dueOfAll(name, bounds)
    );
  }

  /**
   * Counts only the ready queue, which is fast. `undefined`: some events wait elsewhere, for an earlier event
   * or in quarantine.
   */
  #dueInQueue(name: string, bounds: readonly number[], { now, wall }: Time): number[] | undefined {
    const topic = this.#topics.open(name);
    if (topic.ordering === 'key' || this.#isAnyHeld.get(topic.id)) return undefined;
    const counts = bounds.map((bound, index) => {
      const from = index === 0 ? -never : now + bounds[index - 1]!;
      return Number(this.#dueBetween.get(topic.id, from, now + bound, wall - now)?.count);
    });
    const all = Number(this.#readyCount.get(topic.id)?.count);
    return [...counts, counts.reduce((left, count) => left - count, all)];
  }

  async #dueOfAll(name: string, bounds: readonly number[]): Promise<number[]> {
    const counts = [...bounds, Infinity].map(() => 0);
    await this.#walk(name, readTogether, this.#readPublished, ({ state, dueAt }, { now }) => {
      if (state === 'leased' || state === 'blocking') return true;
      const bucket = bounds.findIndex((bound) => dueAt - now < bound);
      counts[bucket < 0 ? bounds.length : bucket]! += 1;
      return true;
    });
    return counts;
  }

  /** Returns the events of a page, and one more if there is a next page. */
  async #firstPublished(name: string, { limit, cursor }: PageRequest, isAsked: Matcher, read: ReadRows) {
    const found: Waiter[] = [];
    const after = cursor === undefined ? undefined : waiterAt(0, numberIn(cursor));
    await this.#walk(
      name,
      Math.min(limit + 1, readTogether),
      (topic, last = after, ...rest) => read.call(this, topic, last, ...rest),
      (waiter) => {
        if (isAsked(waiter)) found.push(waiter);
        return found.length <= limit;
      },
    );
    return found;
  }

  /**
   * Returns the events of a page in the order of their due times, and one more if there is a next page.
   * `read` does not sort by due time, so all events are read.
   */
  async #firstDue(name: string, { limit, cursor }: PageRequest, isAsked: Matcher, read: ReadRows) {
    const after = cursor === undefined ? undefined : placeIn(cursor);
    let found: Waiter[] = [];
    const firstOnly = () => {
      found = found.sort((a, b) => a.dueAt - b.dueAt || a.seq - b.seq).slice(0, limit + 1);
    };
    await this.#walk(name, readTogether, read, (waiter) => {
      if (!isAsked(waiter) || (after && !isAfter(placeOf(waiter), after))) return true;
      found.push(waiter);
      if (found.length > limit + readTogether) firstOnly();
      return true;
    });
    firstOnly();
    return found;
  }

  async #firstQueued(name: string, { limit, cursor }: PageRequest, isAsked: Matcher, isDueLater: boolean) {
    const found: Waiter[] = [];
    const place = cursor === undefined ? undefined : placeIn(cursor);
    const after = place && waiterAt(place[0], Number(place[1]));
    await this.#walk(
      name,
      Math.min(limit + 1, readTogether),
      (topic, last = after, count, { now, wall }) => {
        const { dueAt, seq } = last ?? { dueAt: isDueLater ? now : -never, seq: 0 };
        return this.#queued.all(topic.id, dueAt, seq, wall - now, count) as unknown as WaiterRow[];
      },
      (waiter) => {
        if (isAsked(waiter)) found.push(waiter);
        return found.length <= limit;
      },
    );
    return found;
  }

  #readPublished(topic: Topic, last: Waiter | undefined, count: number): WaiterRow[] {
    const { from, to } = seqsOf(topic);
    return this.#published.all(last?.seq ?? from, to, count) as unknown as WaiterRow[];
  }

  #readRare(topic: Topic, last: Waiter | undefined, count: number): WaiterRow[] {
    const listed = [...this.#suspects.all(topic.id), ...this.#blocking.all(topic.id)] as unknown as [
      number,
    ][];
    const seqs = new Set([...this.#leases.of(topic).keys(), ...listed.map(([seq]) => seq)]);
    const next = [...seqs].filter((seq) => seq > (last?.seq ?? 0)).sort((a, b) => a - b);
    return this.#listed.all(JSON.stringify(next), count) as unknown as WaiterRow[];
  }

  async #walk(
    name: string,
    firstCount: number,
    read: ReadRows,
    visit: (waiter: Waiter, time: Time) => boolean,
  ): Promise<void> {
    let last: Waiter | undefined;
    for (let count = firstCount; ; count = readTogether) {
      const goesOn = this.#store.read((now, wall) => {
        const topic = this.#topics.open(name);
        const rows = read.call(this, topic, last, count, { now, wall });
        const toWaiter = this.#readerOf(topic, { now, wall });
        for (const row of rows) {
          last = toWaiter(row);
          if (!visit(last, { now, wall })) return false;
        }
        return rows.length === count;
      });
      if (!goesOn) return;
      await new Promise<void>(later);
    }
  }

  #readerOf(topic: Topic, { now, wall }: Time): (row: WaiterRow) => Waiter {
    const topicControls = this.#board.controlsFor(topic.name);
    const leases = this.#leases.of(topic);
    return (row) => {
      const [seq, key, tenant, storedDueAt, wallDueAt, , fence] = row;
      const dueAt = wallDueAt === null ? storedDueAt : wallDueAt - wall + now;
      const lease = leases.get(seq);
      const owner = lease && lease.leaseId > fence ? lease.owner : undefined;
      const state = stateOf(row, dueAt, owner !== undefined, topicControls, now);
      return { seq, key, tenant, dueAt, state, owner };
    };
  }

  #show(name: string, waiters: readonly Waiter[]): Waiting[] {
    return this.#store.look((now, wall) => {
      const rows = this.#full.all(JSON.stringify(waiters.map(({ seq }) => seq)));
      const bySeq = new Map(rows.map((row) => [Number(row.seq), row]));
      // Leave out events that were settled after they were found.
      return waiters.flatMap(({ seq, state, dueAt, owner }) => {
        const row = bySeq.get(seq);
        if (!row) return [];
        const { id, type, key, tenant, firstSeenAt } = toEnvelope(row, name, wall - now);
        const envelope = { id, type, key, tenant, firstSeenAt };
        return [{ ...envelope, ...toTrials(row), state, dueAt: toStoredMs(dueAt + wall - now), owner }];
      });
    });
  }
}

function matcherOf({ state, key, tenant }: WaitingQuestion): Matcher {
  const states = state === undefined ? undefined : new Set([state].flat());
  return (waiter) =>
    (!states || states.has(waiter.state)) &&
    (key === undefined || key === waiter.key) &&
    (tenant === undefined || tenant === waiter.tenant);
}

function stateOf(
  [, key, tenant, , , deaths, , isBlocking, isFollower]: WaiterRow,
  dueAt: number,
  isLeased: boolean,
  topicControls: TopicControls,
  now: number,
): WaitingState {
  if (isBlocking === 1) return 'blocking';
  if (isLeased) return 'leased';
  if (isFollower === 1) return 'behind';
  if (topicControls.holder(tenant, key) !== undefined) return 'held';
  if (deaths > 0) return 'suspect';
  return dueAt > now ? 'delayed' : 'ready';
}

function waiterAt(dueAt: number, seq: number): Waiter {
  return { dueAt, seq, key: null, tenant: null, state: 'ready', owner: undefined };
}

function placeOf({ dueAt, seq }: Waiter): Place {
  return [dueAt, String(seq)];
}

function isAfter([dueAt, seq]: Place, [otherAt, otherSeq]: Place): boolean {
  return dueAt > otherAt || (dueAt === otherAt && Number(seq) > Number(otherSeq));
}
