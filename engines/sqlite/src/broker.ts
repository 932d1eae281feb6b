import type { DatabaseSync } from 'node:sqlite';
import {
  type Act,
  type AuditedAct,
  assertBounds,
  assertEvents,
  assertReason,
  assertTopic,
  assertWaitingQuestion,
  type Broker,
  type SizeLimits,
  subject,
} from '@holdfast/contracts';
import { OptionsError } from 'holdfast';
import type { AuditLog } from './audit-log.ts';
import type { ControlBoard } from './controls.ts';
import type { Doorbells } from './doorbells.ts';
import type { Leases } from './leases.ts';
import { Publisher } from './publisher.ts';
import type { queueInspection } from './queue-inspection.ts';
import type { Settlements } from './settlements.ts';
import type { Store } from './store.ts';
import type { Topics } from './topics.ts';
import type { WaitingList } from './waiting-list.ts';

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
  readonly waitingList: WaitingList;
  readonly audit: AuditLog;
}

export function sqliteBroker(parts: BrokerParts): Broker<DatabaseSync> {
  const { store, limits, topics, board, bells, leases, settlements, inspection, waitingList, audit } = parts;
  const publisher = new Publisher(store.database, store.newId, store.sequence);
  /** `publishWithin` accepts connections of the caller, and each connection needs its own publisher. */
  const publishers = new WeakMap<DatabaseSync, Publisher>([[store.database, publisher]]);

  function act(
    what: AuditedAct,
    name: string,
    ids: readonly string[],
    by: Act,
    change: (id: string, now: number) => boolean,
  ): Promise<boolean[]> {
    return store.write((now, wall) => {
      audit.assertMayUndo(by);
      topics.open(name);
      const changed = ids.map((id) => change(id, now));
      const events = ids.filter((_, index) => changed[index]).map((id) => subject('event', id));
      const subjects = [subject('topic', name), ...events];
      if (events.length > 0) audit.write({ ...by, what, subjects, count: events.length }, wall);
      return changed;
    });
  }

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

    async publishBehind(name, events) {
      assertEvents(events, limits);
      return store.write((now, wall) => {
        const behind = publisher.publishBehind(name, events, { now, wall });
        if (behind.includes(true)) bells.ringAfterCommit(name);
        return behind;
      });
    },

    publishWithin(tx, name, events) {
      assertEvents(events, limits);
      if (!tx.isTransaction) throw new OptionsError('tx', 'a connection', 'one with a transaction under way');
      const own = publishers.get(tx) ?? new Publisher(tx, store.newId);
      publishers.set(tx, own);
      const published = own.publish(name, events, store.time());
      // Commits of another connection are found by polling, like commits of another process.
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

    async waiting(name, request, question = {}) {
      assertWaitingQuestion(question);
      await leases.catchUp();
      return waitingList.page(name, request, question);
    },

    async due(name, bounds) {
      assertBounds(bounds);
      await leases.catchUp();
      return waitingList.due(name, bounds);
    },

    async retryNow(name, ids, by) {
      assertReason(by);
      await leases.catchUp();
      return act('retry_now', name, ids, by, (id, now) => inspection.retryNow(name, id, now));
    },

    async unblock(name, ids, by) {
      assertReason(by);
      return act('unblock', name, ids, by, (id) => inspection.unblock(name, id));
    },

    doorbell: (name, ring) => bells.add(name, ring),

    async history(name, range) {
      return inspection.history(name, range);
    },
  };
}
