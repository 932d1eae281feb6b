import { type AuditedAct, subject } from '../audit.ts';
import type {
  Broker,
  Leased,
  LeaseRequest,
  Published,
  Settlement,
  TopicSettings,
  WaitingQuestion,
  WaitingState,
} from '../broker.ts';
import { waitingStates } from '../broker.ts';
import { EngineFullError, TopicError } from '../contract-errors.ts';
import { type Act, controlId } from '../controls.ts';
import type { Delivery, Envelope, Lease, NewEvent } from '../envelope.ts';
import { assertBounds, assertOrderingChange, assertTopic, assertWaitingQuestion } from '../for-engines.ts';
import type { Place } from '../page.ts';
import { assertReason } from '../parked-filter.ts';
import { LEASE_LOST, type SettlementResult } from '../settlement-result.ts';
import { assertEvents } from '../size-limits.ts';
import { assertMayUndo, writeAudit } from './audit.ts';
import { chooseRows, rowStatesOf } from './choose-rows.ts';
import { heldOf, memoryControls, quarantineOf } from './controls.ts';
import { applySettlement, type Commit, runCommit } from './settlement.ts';
import { oldestFirst, pageOf, type SharedState } from './shared-state.ts';
import type { MemoryTransaction, Row, Topic } from './storage.ts';

const defaultSettings: TopicSettings = { ordering: 'none', keepSettledMs: 0 };

/** The broker of the memory engine. It is the reference for other engines, so it prefers simple code to speed. */
export function memoryBroker(shared: SharedState): Broker<MemoryTransaction> {
  const { storage } = shared;
  const controls = memoryControls(shared);

  function open(name: string): Topic {
    const topic = storage.topics.get(name);
    if (!topic) throw new TopicError(name, 'was never declared');
    const now = shared.now();
    for (const row of topic.rows.values()) endLease(row, now);
    return topic;
  }

  function statesOf(name: string): [Row, WaitingState][] {
    const isHeld = quarantineOf(storage, name, shared.now());
    return rowStatesOf(open(name), shared.now(), isHeld);
  }

  function leasedRow({ topic, id, token }: Lease): Row | undefined {
    const row = storage.topics.get(topic)?.rows.get(id);
    if (row) endLease(row, shared.now());
    return row?.lease?.token === token ? row : undefined;
  }

  function assertRoom(more: number): void {
    const held = [...storage.topics.values()].reduce((sum, { rows }) => sum + rows.size, 0);
    if (held + more > shared.bounds.eventsMax)
      throw new EngineFullError('unsettled events', shared.bounds.eventsMax);
  }

  function put(name: string, topic: Topic, event: NewEvent, now: number): Published {
    const id = event.id ?? shared.newId();
    const known = topic.rows.get(id);
    if (known && !known.blocking) {
      // The topic already has this event. If a replay publishes it, the stored event now belongs to that
      // replay.
      const replay = event.past?.replay ?? known.envelope.replay;
      known.envelope = { ...known.envelope, replay };
      return { id, duplicate: true };
    }
    // `known` is a parked event that blocks its key. The replayed event takes its position, before later
    // events of the key.
    const placed = known ? { ...event, key: known.envelope.key! } : event;
    const row = rowOf(placed, envelopeOf(placed, id, name, now), topic, now);
    topic.rows.set(id, { ...row, order: known?.order ?? storage.next() });
    return { id, duplicate: false };
  }

  async function settleOne(settlement: Settlement<MemoryTransaction>): Promise<SettlementResult> {
    if (!leasedRow(settlement.lease)) return LEASE_LOST;
    const commit: Commit = await runCommit(storage, settlement);
    return shared.write((now) => {
      // Check the lease again: it may have ended while `commit` ran.
      const row = leasedRow(settlement.lease);
      return row ? applySettlement(shared, row, settlement, commit, now) : LEASE_LOST;
    });
  }

  function note(
    what: AuditedAct,
    topic: string,
    ids: readonly string[],
    changed: readonly boolean[],
    act: Act,
  ): void {
    const events = ids.filter((_, index) => changed[index]).map((id) => subject('event', id));
    if (events.length === 0) return;
    writeAudit(shared, {
      ...act,
      what,
      subjects: [subject('topic', topic), ...events],
      count: events.length,
    });
  }

  return {
    limits: shared.limits,
    controls,

    async declare(name, settings = {}) {
      assertTopic(name, settings);
      return shared.write(() => {
        const topic = storage.topics.get(name);
        const { ordering, keepSettledMs } = { ...defaultSettings, ...topic, ...settings };
        if (!topic) storage.topics.set(name, { ordering, keepSettledMs, rows: new Map(), settled: [] });
        else {
          assertOrderingChange(name, topic.ordering, ordering, topic.rows.size > 0);
          Object.assign(topic, { ordering, keepSettledMs });
        }
        return { ordering, keepSettledMs };
      });
    },

    async topics() {
      return [...storage.topics.keys()];
    },

    async publish(name, events) {
      assertEvents(events, shared.limits);
      return shared.write((now) => {
        const topic = open(name);
        assertRoom(events.length);
        const published = events.map((event) => put(name, topic, event, now));
        storage.ring(name);
        return published;
      });
    },

    publishWithin(tx, name, events) {
      assertEvents(events, shared.limits);
      const { rows } = open(name);
      const named = events.map((event) => ({ ...event, id: event.id ?? shared.newId() }));
      tx.defer(() => {
        for (const event of named) put(name, open(name), event, shared.now());
        storage.ring(name);
      });
      return named.map(({ id }) => ({ id, duplicate: rows.get(id)?.blocking === false }));
    },

    async publishBehind(name, events) {
      assertEvents(events, shared.limits);
      return shared.write((now) => {
        const topic = open(name);
        assertRoom(events.length);
        const behind = events.map((event) => {
          const isKnown = event.id !== undefined && topic.rows.has(event.id);
          const isBusy =
            event.key !== undefined &&
            [...topic.rows.values()].some(({ orderKey }) => orderKey === event.key);
          if (isKnown || isBusy) put(name, topic, event, now);
          return isKnown || isBusy;
        });
        if (behind.includes(true)) storage.ring(name);
        return behind;
      });
    },

    async lease(name, request) {
      return shared.write((now): Leased => {
        const controlsVersion = controls.version(now);
        const isPaused = storage.controls.has(controlId({ kind: 'pause', topic: name }));
        const isHeld = heldOf(storage, name, now);
        const rowStates = rowStatesOf(open(name), now, isHeld);
        const suspects = rowStates.filter(([, state]) => state === 'suspect').length;
        if (isPaused) return { deliveries: [], suspects, nextDueInMs: undefined, controlsVersion };
        const chosen = chooseRows(rowStates, request, now, isHeld);
        const deliveries = chosen.map((row) => leaseRow(row, request, now));
        return { deliveries, suspects, nextDueInMs: nextDueInMs(rowStates, now), controlsVersion };
      });
    },

    async settle(batch) {
      const settled: SettlementResult[] = [];
      for (const settlement of batch) settled.push(await settleOne(settlement));
      for (const topic of new Set(batch.map(({ lease }) => lease.topic))) storage.ring(topic);
      return settled;
    },

    async extend(leases, leaseMs) {
      return shared.write((now) =>
        leases.map((lease) => {
          const row = leasedRow(lease);
          if (row?.lease) row.lease.endsAt = now + leaseMs;
          return row !== undefined;
        }),
      );
    },

    async counts(name) {
      const now = shared.now();
      const rowStates = statesOf(name);
      const counts = Object.fromEntries(waitingStates.map((state) => [state, 0])) as Record<
        WaitingState,
        number
      >;
      for (const [, state] of rowStates) counts[state] += 1;
      const ready = rowStates.filter(([, state]) => state === 'ready');
      const oldestReadyMs = ready.reduce((oldest, [row]) => Math.max(oldest, now - row.dueAt), 0);
      return { ...counts, oldestReadyMs, nextDueInMs: nextDueInMs(rowStates, now), asOf: now };
    },

    async waiting(name, request, question = {}) {
      assertWaitingQuestion(question);
      const asked = statesOf(name).filter(([row, state]) => isAsked(question, row, state));
      const rows =
        question.order === 'due'
          ? pageOf(asked.sort(byDueTime), request, duePlaceOf, ([at, order], [other, otherOrder]) => {
              return at > other || (at === other && Number(order) > Number(otherOrder));
            })
          : pageOf(asked, request, ([{ order }]) => [order, ''], oldestFirst);
      const items = rows.items.map(([row, state]) => ({
        id: row.envelope.id,
        type: row.envelope.type,
        key: row.envelope.key,
        tenant: row.envelope.tenant,
        firstSeenAt: row.envelope.firstSeenAt,
        ...attemptStateOf(row),
        state,
        dueAt: row.dueAt,
        owner: row.lease?.owner,
      }));
      return { items, cursor: rows.cursor };
    },

    async due(name, bounds) {
      assertBounds(bounds);
      const now = shared.now();
      const counts = [...bounds, Infinity].map(() => 0);
      for (const { dueAt, lease, blocking } of open(name).rows.values()) {
        if (lease || blocking) continue;
        const bucket = bounds.findIndex((bound) => dueAt - now < bound);
        counts[bucket < 0 ? bounds.length : bucket]! += 1;
      }
      return counts;
    },

    async retryNow(name, ids, act) {
      assertReason(act);
      return shared.write((now) => {
        assertMayUndo(shared, act);
        const { rows } = open(name);
        const moved = ids.map((id) => {
          const row = rows.get(id);
          if (!row || row.lease || row.blocking || row.dueAt <= now) return false;
          row.dueAt = now;
          return true;
        });
        note('retry_now', name, ids, moved, act);
        storage.ring(name);
        return moved;
      });
    },

    async unblock(name, ids, act) {
      assertReason(act);
      return shared.write(() => {
        assertMayUndo(shared, act);
        const { rows } = open(name);
        const released = ids.map((id) => rows.get(id)?.blocking === true && rows.delete(id));
        note('unblock', name, ids, released, act);
        storage.ring(name);
        return released;
      });
    },

    doorbell(name, ring) {
      const rings = storage.doorbells.get(name) ?? new Set();
      storage.doorbells.set(name, rings.add(ring));
      return () => void rings.delete(ring);
    },

    async history(name, { from = -Infinity, to = Infinity, ...request }) {
      const kept = open(name)
        .settled.filter(({ removedAt, event }) => {
          return removedAt > shared.now() && event.firstSeenAt >= from && event.firstSeenAt < to;
        })
        .sort((a, b) => a.order - b.order);
      const page = pageOf(kept, request, ({ order }) => [order, ''], oldestFirst);
      return { items: page.items.map(({ event }) => event), cursor: page.cursor };
    },
  };

  function leaseRow(row: Row, { owner, leaseMs }: LeaseRequest, now: number): Delivery {
    const token = `${owner}/${storage.next()}`;
    row.lease = { token, owner, endsAt: now + leaseMs };
    const { envelope } = row;
    return {
      ...envelope,
      ...attemptStateOf(row),
      lease: { topic: envelope.topic, id: envelope.id, token },
      attempt: row.attempts + 1,
      patienceLeftMs: Math.max(0, (envelope.expiresAt ?? Infinity) - now),
      suspect: row.suspect,
      diagnosis: row.diagnosis,
    };
  }
}

/** Ends an expired lease. The event becomes a suspect: it may have crashed its process. */
function endLease(row: Row, now: number): void {
  if (!row.lease || row.lease.endsAt > now) return;
  row.lease = undefined;
  row.suspect = true;
  row.deaths += 1;
}

function envelopeOf(event: NewEvent, id: string, topic: string, now: number): Envelope {
  return {
    id,
    topic,
    payload: event.payload,
    type: event.type,
    key: event.key,
    tenant: event.tenant,
    headers: event.headers ?? {},
    correlationId: event.correlationId ?? id,
    idempotencyKey: event.idempotencyKey ?? id,
    originTopic: event.past?.originTopic ?? topic,
    firstSeenAt: event.past?.firstSeenAt ?? now,
    expiresAt: event.patienceMs === undefined ? undefined : now + event.patienceMs,
    replay: event.past?.replay,
  };
}

function rowOf(event: NewEvent, envelope: Envelope, topic: Topic, now: number): Omit<Row, 'order'> {
  const { attempts = 0, snoozes = 0, nextDelayMs, lastError, story = [] } = event.past?.moved ?? {};
  const { holdsKey = true, blocking = false } = event.past?.moved ?? {};
  return {
    envelope,
    orderKey: topic.ordering === 'key' && holdsKey ? event.key : undefined,
    dueAt: event.dueAt ?? now + (event.delayMs ?? 0),
    attempts,
    snoozes,
    deaths: 0,
    nextDelayMs,
    lastError,
    story,
    suspect: false,
    blocking,
    lease: undefined,
    diagnosis: undefined,
  };
}

function attemptStateOf({ attempts, snoozes, deaths, nextDelayMs, lastError, story }: Row) {
  return { attempts, snoozes, deaths, nextDelayMs, lastError, story };
}

function isAsked({ state, key, tenant }: WaitingQuestion, { envelope }: Row, actual: WaitingState): boolean {
  if (state !== undefined && !(typeof state === 'string' ? [state] : state).includes(actual)) return false;
  if (key !== undefined && key !== envelope.key) return false;
  return tenant === undefined || tenant === envelope.tenant;
}

function byDueTime([a]: [Row, WaitingState], [b]: [Row, WaitingState]): number {
  return a.dueAt - b.dueAt || a.order - b.order;
}

function duePlaceOf([{ dueAt, order }]: [Row, WaitingState]): Place {
  return [dueAt, String(order)];
}

function nextDueInMs(rowStates: readonly [Row, WaitingState][], now: number): number | undefined {
  const dueAts = rowStates
    .filter(([row, state]) => !row.lease && (state === 'ready' || state === 'delayed'))
    .map(([row]) => row.dueAt);
  return dueAts.length === 0 ? undefined : Math.max(0, Math.min(...dueAts) - now);
}
