import {
  type Broker,
  type Engine,
  type Features,
  missing,
  parkedTopic,
  type Settlement,
} from '@holdfast/contracts';
import { conformance } from '@holdfast/contracts/conformance';
import type { MemoryEngine, MemoryStorage, MemoryTransaction } from '@holdfast/contracts/memory';
import { describe, test } from 'vitest';
import { features, memoryHarness } from './memory-harness.ts';

/** What a broker without columns, keys and transactions can do: the suite must be fair to it, too. */
const modestFeatures: Features = {
  ...features,
  ordering: missing('a queue has no keys'),
  parkedHoldsKey: missing('a queue has no keys'),
  anyDelay: missing('delays are tiers of one unit'),
  publishOnce: missing('ids are not looked up'),
  retriesShare: missing('tiers and topic are one queue'),
  suspects: missing('deliveries are counted, not their ends'),
  waitingList: missing('a queue cannot be listed'),
  retention: missing('what is acknowledged is gone'),
  marksWithSettlement: missing('the ledger is another store'),
  sharedTransaction: missing('there are no transactions'),
  parksInTriage: missing('the parking lot is a topic'),
};

conformance({
  name: 'modest',
  contracts: ['broker'],
  features: modestFeatures,
  means: ['reopen', 'dieAfterWrites'],
  create: () => memoryHarness(modestEngine),
  describe,
  test,
});

function modestEngine(engine: MemoryEngine, storage: MemoryStorage): MemoryEngine {
  const { broker } = engine;
  const { name, durability, sweep, close } = engine;
  const modest: Engine<MemoryTransaction> = {
    ...{ name, durability, sweep, close, features: modestFeatures },
    broker: {
      ...broker,

      async declare(topic, settings) {
        await broker.declare(parkedTopic(topic));
        return broker.declare(topic, settings);
      },

      publish: (topic, events) =>
        broker.publish(
          topic,
          events.map(({ id, delayMs, ...event }) =>
            delayMs === undefined ? event : { ...event, delayMs: inSteps(delayMs) },
          ),
        ),

      /** A few at a time, as queues do. */
      async lease(topic, request) {
        await broker.counts(topic); // ends the leases of the dead
        for (const row of storage.topics.get(topic)!.rows.values())
          Object.assign(row, { suspect: false, deaths: 0 });
        const leased = await broker.lease(topic, {
          ...request,
          limit: request.suspects ? 0 : Math.min(request.limit, 10),
        });
        return { ...leased, suspects: 0, nextDueInMs: undefined };
      },

      settle: (batch) => settle(broker, storage, batch),
    },
  };
  return modest as MemoryEngine;
}

/** Parking is one more hop: the diagnosis goes along, as headers would. */
async function settle(
  broker: Broker<MemoryTransaction>,
  storage: MemoryStorage,
  batch: readonly Settlement<MemoryTransaction>[],
) {
  const settled = [];
  for (const settlement of batch) {
    const { lease } = settlement;
    const row = storage.topics.get(lease.topic)?.rows.get(lease.id);
    if (settlement.kind !== 'park' || !row) {
      const delayed =
        'delayMs' in settlement ? { ...settlement, delayMs: inSteps(settlement.delayMs) } : settlement;
      settled.push(...(await broker.settle([delayed])));
      continue;
    }
    const { error, stop, story, consumer } = settlement;
    const diagnosis = {
      reason: error?.type ?? stop,
      message: error?.message ?? '',
      stop,
      error,
      story,
      consumer,
    };
    const finalAttempt = row.attempts + 1;
    const [answer] = await broker.settle([{ lease, kind: 'reroute', to: parkedTopic(lease.topic) }]);
    if (answer?.took) row.diagnosis = { ...diagnosis, finalAttempt };
    settled.push(answer!);
  }
  return settled;
}

function inSteps(delayMs: number): number {
  return Math.ceil(delayMs / 1000) * 1000;
}
