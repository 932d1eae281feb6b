import type { Broker, NewEvent } from '@holdfast/contracts';
import type { MemoryEngine, MemoryStorage, MemoryTransaction } from '@holdfast/contracts/memory';
import type { BrokenEngine } from './broken-engine.ts';

type MemoryBroker = Broker<MemoryTransaction>;

function broken(
  fault: string,
  found: string,
  alter: (broker: MemoryBroker, storage: MemoryStorage) => Partial<MemoryBroker>,
): BrokenEngine {
  return {
    fault,
    found,
    alter: (engine: MemoryEngine, storage) => ({
      ...engine,
      broker: { ...engine.broker, ...alter(engine.broker, storage) },
    }),
  };
}

/** Publishes with another past. */
function moving(change: (moved: NonNullable<NewEvent['past']>['moved']) => object | undefined) {
  return (broker: MemoryBroker): Partial<MemoryBroker> => ({
    publish: (topic, events) =>
      broker.publish(
        topic,
        events.map((event) =>
          event.past?.moved === undefined
            ? event
            : ({ ...event, past: { ...event.past, moved: change(event.past.moved) } } as NewEvent),
        ),
      ),
  });
}

/** Stores without a place behind a key, in a store that promises one. */
export const brokenMoves: readonly BrokenEngine[] = [
  broken(
    'a move that forgets the story',
    'keeps the attempts of an event that moves here',
    moving((moved) => ({ ...moved, story: [] })),
  ),
  broken(
    'a move that starts to count anew',
    'takes a moved event for a retry',
    moving((moved) => ({ ...moved, attempts: 0 })),
  ),
  broken(
    'a move that is not checked',
    'refuses attempts that cannot be, and stores nothing of the batch',
    moving(() => undefined),
  ),
  broken(
    'a moved event that always holds its key',
    'lets a key flow past a moved event that does not hold it',
    moving((moved) => ({ ...moved, holdsKey: true })),
  ),
  broken(
    'a moved event that is given although it is parked',
    'keeps a key waiting for an event that moves here parked',
    moving((moved) => ({ ...moved, blocking: false })),
  ),
  broken('a store that takes every event', 'stores only events whose key is busy', (broker) => ({
    async publishBehind(topic, events) {
      await broker.publish(topic, events);
      return events.map(() => true);
    },
  })),
  broken('a store that takes no event', 'stores only events whose key is busy', () => ({
    publishBehind: async (_, events) => events.map(() => false),
  })),
  broken(
    'a key that is free as soon as its event is leased',
    'takes a key for busy until its last event is settled',
    (broker, storage) => ({
      async publishBehind(topic, events) {
        const rows = [...storage.topics.get(topic)!.rows.values()];
        if (rows.every(({ lease }) => lease !== undefined)) return events.map(() => false);
        return broker.publishBehind!(topic, events);
      },
    }),
  ),
  broken(
    'a store that keeps an event behind itself',
    'takes a key for busy until its last event is settled',
    (broker) => ({
      publishBehind: (topic, events) =>
        broker.publishBehind!(
          topic,
          events.map(({ id, ...event }) => event),
        ),
    }),
  ),
  broken(
    'a parked event that nobody waits for',
    'takes an event behind a parked one that blocks its key, and its replay in its place',
    (broker, storage) => ({
      async publishBehind(topic, events) {
        const rows = [...storage.topics.get(topic)!.rows.values()];
        if (rows.some(({ blocking }) => blocking)) return events.map(() => false);
        return broker.publishBehind!(topic, events);
      },
    }),
  ),
  broken(
    'a topic that nobody declared',
    'stores nothing behind a key of an unknown topic',
    (broker, storage) => ({
      publishBehind: async (topic, events) =>
        storage.topics.has(topic) ? broker.publishBehind!(topic, events) : events.map(() => false),
    }),
  ),
];
