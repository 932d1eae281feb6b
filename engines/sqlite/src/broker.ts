import type { DatabaseSync } from 'node:sqlite';
import { assertEvents, assertTopic, type Broker, type SizeLimits } from '@holdfast/contracts';
import { OptionsError } from 'holdfast';
import type { ControlBoard } from './controls.ts';
import type { Doorbells } from './doorbells.ts';
import type { Leases } from './leases.ts';
import { Publisher } from './publisher.ts';
import type { queueInspection } from './queue-inspection.ts';
import type { Settlements } from './settlements.ts';
import type { Store } from './store.ts';
import type { Topics } from './topics.ts';

/** The largest number of settlements in one transaction. */
const settledTogether = 1000;

export interface BrokerParts {
  readonly store: Store;
  readonly limits: SizeLimits;
  readonly topics: Topics;
  readonly board: ControlBoard;
  readonly bells: Doorbells;
  readonly leases: Leases;
  readonly settlements: Settlements;
  readonly inspection: ReturnType<typeof queueInspection>;
}

export function sqliteBroker(parts: BrokerParts): Broker<DatabaseSync> {
  const { store, limits, topics, board, bells, leases, settlements, inspection } = parts;
  const publisher = new Publisher(store.database, store.newId, store.sequence);
  /** One publisher for each connection, because `publishWithin` accepts connections that the caller opened. */
  const publishers = new WeakMap<DatabaseSync, Publisher>([[store.database, publisher]]);

  return {
    limits,
    controls: board,

    async declare(name, settings = {}) {
      assertTopic(name, settings);
      return store.write(() => topics.declare(name, settings));
    },

    async topics() {
      return store.look(() => topics.names());
    },

    async publish(name, events) {
      assertEvents(events, limits);
      return store.write((now, wall) => {
        const published = publisher.publish(name, events, { now, wall });
        bells.ringAfterCommit(name);
        return published;
      });
    },

    publishWithin(tx, name, events) {
      assertEvents(events, limits);
      if (!tx.isTransaction) throw new OptionsError('tx', 'a connection', 'one with a transaction under way');
      const own = publishers.get(tx) ?? new Publisher(tx, store.newId);
      publishers.set(tx, own);
      const published = own.publish(name, events, store.time());
      // The doorbell notices commits of another connection by polling, like commits of another process.
      if (tx === store.database) bells.ringAfterCommit(name);
      return published;
    },

    lease: (name, request) => leases.lease(name, request),

    async settle(batch) {
      if (batch.length <= settledTogether)
        return store.write((now, wall) => settlements.settle(batch, { now, wall }));
      const parts = [];
      for (let at = 0; at < batch.length; at += settledTogether) {
        const part = batch.slice(at, at + settledTogether);
        parts.push(store.write((now, wall) => settlements.settle(part, { now, wall })));
      }
      return (await Promise.all(parts)).flat();
    },

    extend: (batch, leaseMs) => leases.extend(batch, leaseMs),

    async counts(name) {
      await leases.catchUp();
      return inspection.counts(name);
    },

    async waiting(name, request) {
      await leases.catchUp();
      return inspection.waiting(name, request);
    },

    async retryNow(name, ids) {
      await leases.catchUp();
      return store.write((now) => ids.map((id) => inspection.retryNow(name, id, now)));
    },

    async unblock(name, ids) {
      return store.write(() => ids.map((id) => inspection.unblock(name, id)));
    },

    doorbell: (name, ring) => bells.add(name, ring),

    async history(name, range) {
      return inspection.history(name, range);
    },
  };
}
