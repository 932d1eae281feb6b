import type {
  Broker,
  Leased,
  LeaseRequest,
  Published,
  Settlement,
  TopicSettings,
  WaitingState,
} from '../broker.ts';
import { waitingStates } from '../broker.ts';
import { EngineFullError, TopicError } from '../contract-errors.ts';
import { controlId } from '../controls.ts';
import type { Delivery, Envelope, Lease, NewEvent } from '../envelope.ts';
import { assertTopic } from '../for-engines.ts';
import { LEASE_LOST, type SettlementResult } from '../settlement-result.ts';
import { assertEvents } from '../size-limits.ts';
import { memoryControls, quarantineOf } from './controls.ts';
import { choose, survey } from './lanes.ts';
import { oldestFirst, pageOf, type Room } from './room.ts';
import { applySettlement, type Commit, runCommit } from './settlement.ts';
import type { MemoryTransaction, Row, Topic } from './storage.ts';

const defaultSettings: TopicSettings = { ordering: 'none', keepSettledMs: 0 };

/** The reference: each operation is one look at all events of a topic, in the words of the contract. */
export function memoryBroker(room: Room): Broker<MemoryTransaction> {
  const { storage } = room;
  const controls = memoryControls(room);

  /** Ends the leases of the dead first: everything else then need not think of them. */
  function open(name: string): Topic {
    const topic = storage.topics.get(name);
    if (!topic) throw new TopicError(name, 'was never declared');
    const now = room.now();
    for (const row of topic.rows.values()) endLease(row, now);
    return topic;
  }

  function stand(name: string): [Row, WaitingState][] {
    const isHeld = quarantineOf(storage, name, room.now());
    return survey(open(name), room.now(), isHeld);
  }

  function inHand({ topic, id, token }: Lease): Row | undefined {
    const row = storage.topics.get(topic)?.rows.get(id);
    if (row) endLease(row, room.now());
    return row?.lease?.token === token ? row : undefined;
  }

  function put(name: string, topic: Topic, event: NewEvent, now: number): Published {
    const id = event.id ?? room.newId();
    const known = topic.rows.get(id);
    if (known && !known.blocking) {
      // The replay's from now on: it waits to hear what becomes of it.
      const replay = event.past?.replay ?? known.envelope.replay;
      known.envelope = { ...known.envelope, replay };
      return { id, duplicate: true };
    }
    // Its replay takes the place that a parked event has held, under the key that waits for it.
    const placed = known ? { ...event, key: known.envelope.key! } : event;
    const row = rowOf(placed, envelopeOf(placed, id, name, now), topic, now);
    topic.rows.set(id, { ...row, order: known?.order ?? storage.next() });
    return { id, duplicate: false };
  }

  async function settleOne(settlement: Settlement<MemoryTransaction>): Promise<SettlementResult> {
    if (!inHand(settlement.lease)) return LEASE_LOST;
    const commit: Commit = await runCommit(storage, settlement);
    return room.write((now) => {
      // Asked again: `commit` may have taken longer than the lease.
      const row = inHand(settlement.lease);
      return row ? applySettlement(room, row, settlement, commit, now) : LEASE_LOST;
    });
  }

  return {
    limits: room.limits,
    controls,

    async declare(name, settings = {}) {
      assertTopic(name, settings);
      return room.write(() => {
        const topic = storage.topics.get(name);
        const { ordering, keepSettledMs } = { ...defaultSettings, ...topic, ...settings };
        if (!topic) storage.topics.set(name, { ordering, keepSettledMs, rows: new Map(), settled: [] });
        else {
          if (ordering !== topic.ordering && topic.rows.size > 0) {
            throw new TopicError(name, `is ordered by ${topic.ordering}, and holds events`);
          }
          Object.assign(topic, { ordering, keepSettledMs });
        }
        return { ordering, keepSettledMs };
      });
    },

    async topics() {
      return [...storage.topics.keys()];
    },

    async publish(name, events) {
      assertEvents(events, room.limits);
      return room.write((now) => {
        const topic = open(name);
        const held = [...storage.topics.values()].reduce((sum, { rows }) => sum + rows.size, 0);
        if (held + events.length > room.bounds.eventsMax) {
          throw new EngineFullError('unsettled events', room.bounds.eventsMax);
        }
        const published = events.map((event) => put(name, topic, event, now));
        storage.ring(name);
        return published;
      });
    },

    publishWithin(tx, name, events) {
      assertEvents(events, room.limits);
      const { rows } = open(name);
      const named = events.map((event) => ({ ...event, id: event.id ?? room.newId() }));
      tx.defer(() => {
        for (const event of named) put(name, open(name), event, room.now());
        storage.ring(name);
      });
      return named.map(({ id }) => ({ id, duplicate: rows.get(id)?.blocking === false }));
    },

    async lease(name, request) {
      return room.write((now): Leased => {
        const controlsVersion = controls.version(now);
        const isPaused = storage.controls.has(controlId({ kind: 'pause', topic: name }));
        const stands = stand(name);
        const suspects = stands.filter(([, state]) => state === 'suspect').length;
        if (isPaused) return { deliveries: [], suspects, nextDueInMs: undefined, controlsVersion };
        const chosen = choose(stands, request, now, quarantineOf(storage, name, now));
        const deliveries = chosen.map((row) => handOut(row, request, now));
        return { deliveries, suspects, nextDueInMs: nextDueInMs(stands, now), controlsVersion };
      });
    },

    async settle(batch) {
      const settled: SettlementResult[] = [];
      for (const settlement of batch) settled.push(await settleOne(settlement));
      for (const topic of new Set(batch.map(({ lease }) => lease.topic))) storage.ring(topic);
      return settled;
    },

    async extend(leases, leaseMs) {
      return room.write((now) =>
        leases.map((lease) => {
          const row = inHand(lease);
          if (row?.lease) row.lease.endsAt = now + leaseMs;
          return row !== undefined;
        }),
      );
    },

    async counts(name) {
      const now = room.now();
      const stands = stand(name);
      const counts = Object.fromEntries(waitingStates.map((state) => [state, 0])) as Record<
        WaitingState,
        number
      >;
      for (const [, state] of stands) counts[state] += 1;
      const ready = stands.filter(([, state]) => state === 'ready');
      const oldestReadyMs = ready.reduce((oldest, [row]) => Math.max(oldest, now - row.dueAt), 0);
      return { ...counts, oldestReadyMs, nextDueInMs: nextDueInMs(stands, now) };
    },

    async waiting(name, request) {
      const rows = pageOf(stand(name), request, ([{ order }]) => [order, ''], oldestFirst);
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

    async retryNow(name, ids) {
      return room.write((now) => {
        const { rows } = open(name);
        const moved = ids.map((id) => {
          const row = rows.get(id);
          if (!row || row.lease || row.blocking || row.dueAt <= now) return false;
          row.dueAt = now;
          return true;
        });
        storage.ring(name);
        return moved;
      });
    },

    async unblock(name, ids) {
      return room.write(() => {
        const { rows } = open(name);
        const released = ids.map((id) => rows.get(id)?.blocking === true && rows.delete(id));
        storage.ring(name);
        return released;
      });
    },

    doorbell(name, ring) {
      const rings = storage.bells.get(name) ?? new Set();
      storage.bells.set(name, rings.add(ring));
      return () => void rings.delete(ring);
    },

    async history(name, { from = -Infinity, to = Infinity, ...request }) {
      const kept = open(name)
        .settled.filter(({ removedAt, event }) => {
          return removedAt > room.now() && event.firstSeenAt >= from && event.firstSeenAt < to;
        })
        .sort((a, b) => a.order - b.order);
      const page = pageOf(kept, request, ({ order }) => [order, ''], oldestFirst);
      return { items: page.items.map(({ event }) => event), cursor: page.cursor };
    },
  };

  function handOut(row: Row, { owner, leaseMs }: LeaseRequest, now: number): Delivery {
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

/** A lease that has ended unsettled makes a suspect. */
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
  return {
    envelope,
    lane: topic.ordering === 'key' ? event.key : undefined,
    dueAt: event.dueAt ?? now + (event.delayMs ?? 0),
    attempts: 0,
    snoozes: 0,
    deaths: 0,
    nextDelayMs: undefined,
    lastError: undefined,
    story: [],
    suspect: false,
    blocking: false,
    lease: undefined,
    diagnosis: undefined,
  };
}

function attemptStateOf({ attempts, snoozes, deaths, nextDelayMs, lastError, story }: Row) {
  return { attempts, snoozes, deaths, nextDelayMs, lastError, story };
}

function nextDueInMs(stands: readonly [Row, WaitingState][], now: number): number | undefined {
  const dueAts = stands
    .filter(([row, state]) => !row.lease && (state === 'ready' || state === 'delayed'))
    .map(([row]) => row.dueAt);
  return dueAts.length === 0 ? undefined : Math.max(0, Math.min(...dueAts) - now);
}
