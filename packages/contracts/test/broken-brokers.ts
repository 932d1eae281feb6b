import { type Broker, LEASE_LOST, type Lease, type Settlement, TOOK } from '@holdfast/contracts';
import type { MemoryEngine, MemoryStorage, MemoryTransaction } from '@holdfast/contracts/memory';
import type { BrokenEngine } from './broken-engine.ts';

type MemoryBroker = Broker<MemoryTransaction>;
type MemorySettlement = Settlement<MemoryTransaction>;

function brokenBroker(
  fault: string,
  found: string,
  alter: (broker: MemoryBroker, storage: MemoryStorage, engine: MemoryEngine) => Partial<MemoryBroker>,
): BrokenEngine {
  return {
    fault,
    found,
    alter: (engine, storage) => ({
      ...engine,
      broker: { ...engine.broker, ...alter(engine.broker, storage, engine) },
    }),
  };
}

function brokenSettle(
  fault: string,
  found: string,
  change: (settlement: MemorySettlement, storage: MemoryStorage) => MemorySettlement,
): BrokenEngine {
  return brokenBroker(fault, found, (broker, storage) => ({
    settle: (batch) => broker.settle(batch.map((settlement) => change(settlement, storage))),
  }));
}

/** The current lease of the event. */
function stolen(storage: MemoryStorage, { topic, id, token }: Lease): Lease {
  return { topic, id, token: storage.topics.get(topic)?.rows.get(id)?.lease?.token ?? token };
}

export const brokenBrokers: readonly BrokenEngine[] = [
  brokenSettle(
    'a settlement that does not look at the token',
    'changes nothing for a settlement under a lost lease',
    (settlement, storage) => ({ ...settlement, lease: stolen(storage, settlement.lease) }),
  ),
  brokenBroker(
    'an acknowledgement that does not ask whether its event was settled before',
    'settles an event once under a lease, also while others of that lease are unsettled',
    (broker, storage) => {
      const tokens = new Set<string>();
      return {
        async settle(batch) {
          const settled = await broker.settle(batch);
          return settled.map((answer, index) => {
            const { kind, lease } = batch[index]!;
            if (answer.took) tokens.add(lease.token);
            if (answer.took || kind !== 'ack' || !tokens.has(lease.token)) return answer;
            storage.topics.get(lease.topic)!.rows.delete(lease.id);
            return TOOK;
          });
        },
      };
    },
  ),
  brokenBroker(
    'a queue that gives the last first',
    'keeps a batch whole and in order',
    (broker, storage) => ({
      async lease(topic, request) {
        const { rows } = storage.topics.get(topic)!;
        for (const row of rows.values()) row.dueAt -= row.order;
        return broker.lease(topic, request);
      },
    }),
  ),
  brokenBroker('the tail of a published batch is lost', 'keeps a batch whole', (broker) => ({
    async publish(topic, events) {
      const stored = await broker.publish(topic, events.slice(0, 20));
      return events.map(
        (event, index) => stored[index] ?? { id: event.id ?? `lost ${index}`, duplicate: false },
      );
    },
  })),
  brokenBroker(
    'the tail of a settled batch is lost',
    'settles a whole batch and returns a result for each',
    (broker) => ({
      async settle(batch) {
        const settled = await broker.settle(batch.slice(0, 10));
        return batch.map(
          ({ lease }, index) => settled[index] ?? (lease.token === 'nonsense' ? LEASE_LOST : TOOK),
        );
      },
    }),
  ),
  brokenBroker(
    'order that is not kept',
    'keeps later events of a key behind one that is leased, and leases other keys',
    (broker) => ({ declare: (topic, settings) => broker.declare(topic, { ...settings, ordering: 'none' }) }),
  ),
  brokenSettle(
    'order that is kept until something fails',
    'keeps later events of a key behind one that waits for its retry',
    (settlement) => (settlement.kind === 'retry' ? { ...settlement, holdsKey: false } : settlement),
  ),
  brokenBroker('a published event that is given too early', 'leases no event before it is due', (broker) => ({
    publish: (topic, events) =>
      broker.publish(
        topic,
        events.map(({ delayMs, dueAt, ...event }) => event),
      ),
  })),
  brokenSettle(
    'a retry that is given too early',
    'retries after the delay, with one attempt more, its error and its story',
    (settlement) => (settlement.kind === 'retry' ? { ...settlement, delayMs: 0 } : settlement),
  ),
  brokenBroker(
    'a retry that forgets the event before it writes it anew',
    'loses nothing when it dies between two writes',
    (broker, storage) => ({
      async settle(batch) {
        const [settlement] = batch;
        if (batch.length !== 1 || settlement?.kind !== 'retry') return broker.settle(batch);
        const { topic, id } = settlement.lease;
        const row = storage.topics.get(topic)?.rows.get(id);
        const settled = await broker.settle([{ lease: settlement.lease, kind: 'ack' }]);
        if (row && settled[0]?.took) await broker.publish(topic, [{ id, payload: row.envelope.payload }]);
        return settled;
      },
    }),
  ),
  brokenBroker(
    'a lease that does not keep others away',
    'leases an event to one consumer only',
    (broker, storage) => ({
      async lease(topic, request) {
        const leased = await broker.lease(topic, request);
        for (const { id } of leased.deliveries) storage.topics.get(topic)!.rows.get(id)!.lease = undefined;
        return leased;
      },
    }),
  ),
  brokenBroker(
    'a lease as heavy as it comes',
    'leases at most bytesMax, and at least one event',
    (broker) => ({ lease: (topic, { bytesMax: _, ...request }) => broker.lease(topic, request) }),
  ),
  brokenBroker('headers that are lost', 'keeps everything that a producer gives', (broker) => ({
    publish: (topic, events) =>
      broker.publish(
        topic,
        events.map(({ headers, ...event }) => event),
      ),
  })),
  brokenBroker(
    'headers that are lost on the way back',
    'keeps headers and origin over a retry',
    (broker) => ({
      async lease(topic, request) {
        const leased = await broker.lease(topic, request);
        const deliveries = leased.deliveries.map((d) => (d.attempt > 1 ? { ...d, headers: {} } : d));
        return { ...leased, deliveries };
      },
    }),
  ),
  brokenSettle(
    'a parked event without its story',
    'parks with reason, message, stop, final attempt, story and consumer',
    (settlement) => (settlement.kind === 'park' ? { ...settlement, story: [] } : settlement),
  ),
  brokenSettle(
    'a parked event without its consumer',
    'parks with reason, message, stop, final attempt, story and consumer',
    (settlement) => (settlement.kind === 'park' ? { ...settlement, consumer: 'somebody' } : settlement),
  ),
  brokenBroker(
    'a heartbeat that does not look at the token',
    'changes nothing for a heartbeat under a lost lease',
    (broker, storage) => ({
      extend: (leases, leaseMs) =>
        broker.extend(
          leases.map((lease) => stolen(storage, lease)),
          leaseMs,
        ),
    }),
  ),
  brokenBroker(
    'a pause that is ignored',
    'leases nothing of a paused topic until it is resumed',
    (broker, storage) => ({
      async lease(topic, request) {
        const standing = [...storage.controls];
        storage.controls.clear();
        const leased = await broker.lease(topic, request);
        for (const [id, control] of standing) storage.controls.set(id, control);
        return leased;
      },
    }),
  ),
  brokenBroker(
    'a pause that other processes do not hear of',
    'keeps controls for every process',
    (broker) => {
      const paused = new Set<string>();
      return {
        controls: {
          ...broker.controls,
          async impose(control, act, forMs) {
            const standing = await broker.controls.impose(control, act, forMs);
            if (control.kind === 'pause') {
              paused.add(control.topic);
              await broker.controls.lift(standing.id, act);
            }
            return standing;
          },
        },
        async lease(topic, request) {
          return broker.lease(topic, paused.has(topic) ? { ...request, limit: 0 } : request);
        },
      };
    },
  ),
  brokenBroker(
    'a delay that lives in the process',
    'keeps delays in the store, not in the process',
    (broker, storage) => {
      const later: { topic: string; id: string; dueAt: number }[] = [];
      return {
        async publish(topic, events) {
          const published = await broker.publish(topic, events);
          for (const { id } of published) {
            const row = storage.topics.get(topic)!.rows.get(id)!;
            if (row.dueAt <= row.envelope.firstSeenAt) continue;
            later.push({ topic, id, dueAt: row.dueAt });
            row.dueAt = Infinity;
          }
          return published;
        },
        async lease(topic, request) {
          for (const { id, dueAt } of later) {
            const row = storage.topics.get(topic)?.rows.get(id);
            if (row?.dueAt === Infinity) row.dueAt = dueAt;
          }
          return broker.lease(topic, request);
        },
      };
    },
  ),
  brokenBroker(
    'marks that are written whatever becomes of the settlement',
    'writes marks with the settlement, or not at all',
    (broker, _, { ledger }) => ({
      async settle(batch) {
        const marks = batch.flatMap(({ lease, marks = [] }) =>
          marks.map((handler) => ({ handler, eventId: lease.id })),
        );
        await ledger.mark(marks);
        return broker.settle(batch);
      },
    }),
  ),
  brokenBroker(
    'marks that are written after the settlement',
    'never has a mark without its settlement after a crash, nor the other way round',
    (broker, _, { ledger }) => ({
      async settle(batch) {
        const settled = await broker.settle(
          batch.map(({ marks, ...settlement }) => settlement as MemorySettlement),
        );
        for (const [index, { lease, marks = [] }] of batch.entries()) {
          if (settled[index]?.took)
            await ledger.mark(marks.map((handler) => ({ handler, eventId: lease.id })));
        }
        return settled;
      },
    }),
  ),
  brokenBroker(
    'retries that starve first tries',
    'does not let retries starve first tries, nor the other way round',
    (broker) => ({ lease: (topic, { retriesShare, ...request }) => broker.lease(topic, request) }),
  ),
  brokenBroker(
    'suspects that run in company',
    'hands out a suspect alone, and counts deaths',
    (broker, storage) => ({
      async lease(topic, request) {
        await broker.counts(topic); // ends the leases of the dead
        for (const row of storage.topics.get(topic)!.rows.values()) row.suspect = false;
        return broker.lease(topic, request);
      },
    }),
  ),
  brokenBroker('deaths that are not counted', 'hands out a suspect alone, and counts deaths', (broker) => ({
    async lease(topic, request) {
      const leased = await broker.lease(topic, request);
      return { ...leased, deliveries: leased.deliveries.map((delivery) => ({ ...delivery, deaths: 1 })) };
    },
  })),
  {
    fault: 'leases that end with the process',
    found: 'knows after a restart what is leased',
    alter(engine, storage) {
      for (const { rows } of storage.topics.values()) for (const row of rows.values()) row.lease = undefined;
      return engine;
    },
  },
  brokenBroker(
    'a quarantine that is ignored',
    'holds the events of a quarantined tenant or key, and lets the rest flow',
    (broker, storage) => ({
      async lease(topic, request) {
        const standing = [...storage.controls];
        for (const [id, { control }] of standing)
          if (control.kind === 'quarantine') storage.controls.delete(id);
        const leased = await broker.lease(topic, request);
        for (const [id, control] of standing) storage.controls.set(id, control);
        return leased;
      },
    }),
  ),
  brokenBroker('controls without a version', 'says in every lease which controls are in force', (broker) => ({
    async lease(topic, request) {
      return { ...(await broker.lease(topic, request)), controlsVersion: 1 };
    },
  })),
  brokenBroker('a snooze that costs an attempt', 'snoozes without an attempt', (broker, storage) => ({
    async settle(batch) {
      for (const { kind, lease } of batch) {
        const row = storage.topics.get(lease.topic)?.rows.get(lease.id);
        if (kind === 'snooze' && row) row.attempts += 1;
      }
      return broker.settle(batch);
    },
  })),
  brokenBroker(
    'an effect apart from its settlement',
    'makes an effect with its settlement, or not at all',
    (broker, storage) => ({
      async settle(batch) {
        const tx = {
          put: (name: string, value: string) => void storage.effects.set(name, value),
          get: (name: string) => storage.effects.get(name),
          defer: (write: () => void) => write(),
        };
        for (const settlement of batch) {
          if (settlement.kind === 'ack') await Promise.resolve(settlement.commit?.(tx)).catch(() => {});
        }
        return broker.settle(batch);
      },
    }),
  ),
  brokenBroker('an effect that is made twice', 'does not make an effect twice', (broker, storage) => ({
    settle(batch) {
      storage.marks.clear();
      return broker.settle(batch);
    },
  })),
  brokenBroker(
    'an uncertain publish that doubles',
    'stores an event once, however often it is published',
    (broker) => ({
      publish: (topic, events) =>
        broker.publish(
          topic,
          events.map(({ id, ...event }) => event),
        ),
    }),
  ),
  brokenBroker('a bell that does not ring', 'rings the doorbell when something may be due', () => ({
    doorbell: () => () => {},
  })),
  brokenSettle(
    'a parked event that lets go of its key',
    'keeps a key waiting for a parked event that holds it',
    (settlement) => (settlement.kind === 'park' ? { ...settlement, holdsKey: false } : settlement),
  ),
  brokenBroker(
    'history in the order of settling',
    'keeps settled events for the declared time, to be read back',
    (broker, storage) => ({
      history(topic, range) {
        const { settled } = storage.topics.get(topic)!;
        storage.topics.get(topic)!.settled = settled.map((kept, order) => ({ ...kept, order }));
        return broker.history(topic, range);
      },
    }),
  ),
];
