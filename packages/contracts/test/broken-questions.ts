import {
  type Broker,
  filterIsCounted,
  matches,
  type ParkedEvent,
  type ParkedFilter,
  type Triage,
} from '@holdfast/contracts';
import type { MemoryStorage, MemoryTransaction } from '@holdfast/contracts/memory';
import type { BrokenEngine } from './broken-engine.ts';

function brokenTriage(
  fault: string,
  found: string,
  alter: (triage: Triage, storage: MemoryStorage) => Partial<Triage>,
): BrokenEngine {
  return {
    fault,
    found,
    alter: (engine, storage) => ({
      ...engine,
      triage: { ...engine.triage, ...alter(engine.triage, storage) },
    }),
  };
}

/** A fault in the understanding of filters. */
function brokenFilter(
  fault: string,
  found: string,
  change: (filter: ParkedFilter) => ParkedFilter,
): BrokenEngine {
  return brokenTriage(fault, found, (triage) => ({
    list: (filter, page) => triage.list(change(filter), page),
    count: (filter) => triage.count(change(filter)),
  }));
}

function brokenBroker(
  fault: string,
  found: string,
  alter: (broker: Broker<MemoryTransaction>, storage: MemoryStorage) => Partial<Broker<MemoryTransaction>>,
): BrokenEngine {
  return {
    fault,
    found,
    alter: (engine, storage) => ({
      ...engine,
      broker: { ...engine.broker, ...alter(engine.broker, storage) },
    }),
  };
}

export const brokenQuestions: readonly BrokenEngine[] = [
  brokenFilter('a list of which the first value counts', 'finds by lists of values', ({ key, ...filter }) =>
    Array.isArray(key) ? { ...filter, key: key[0] ?? '' } : filter,
  ),
  brokenFilter(
    'a filter that knows no not',
    'leaves out events that not names',
    ({ not, ...filter }) => filter,
  ),
  brokenFilter(
    'headers in small letters',
    'finds by headers and by the consumer',
    ({ headers = {}, ...filter }) => ({
      ...filter,
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
      ),
    }),
  ),
  brokenTriage(
    'a breakdown that forgets the rest',
    'counts by every property and by a header, the most frequent first',
    (triage) => ({
      breakdown: async (filter, by, limit) => ({
        ...(await triage.breakdown(filter, by, limit)),
        others: 0,
      }),
    }),
  ),
  brokenTriage('buckets that start anywhere', 'counts by the time of parking', (triage) => ({
    async histogram(filter, bucketMs) {
      const buckets = await triage.histogram(filter, bucketMs);
      return buckets.map(({ at, count }) => ({ at: at + 1, count }));
    },
  })),
  brokenTriage('a search without a limit', 'says how far a search has looked', (triage) => ({
    list: (filter, { lookMax: _, ...page }) => triage.list(filter, page),
  })),
  brokenTriage(
    'a breakdown into at least one value',
    'refuses a question that it does not understand',
    (triage) => ({
      breakdown: (filter, by, limit) => triage.breakdown(filter, by, Math.max(1, limit)),
    }),
  ),
  brokenTriage(
    'a rule with any filter',
    'refuses a filter that it does not understand, also of a rule',
    (_, storage) => ({
      async setRule(rule) {
        storage.rules.set(rule.name, rule);
      },
    }),
  ),
  brokenTriage(
    'the second of two editors wins',
    'refuses an edit of a version that has changed since',
    (triage) => ({ edit: (id, { version: _, ...edit }, act) => triage.edit(id, edit, act) }),
  ),
  brokenTriage(
    'a first story that is lost',
    'keeps how an event was parked before: the first time and the last three',
    (triage) => ({
      async get(id) {
        const event = await triage.get(id);
        return event && { ...event, earlier: event.earlier.slice(-3) };
      },
    }),
  ),
  {
    fault: 'a count that retention does not change',
    found: 'counts by topic, status and fingerprint what a scan would count',
    alter(engine, storage) {
      const ghosts: ParkedEvent[] = [];
      return {
        ...engine,
        async sweep(limit) {
          const before = [...storage.parked.values()];
          const swept = await engine.sweep(limit);
          ghosts.push(...before.filter(({ id }) => !storage.parked.has(id)));
          return swept;
        },
        triage: {
          ...engine.triage,
          async count(filter) {
            const more = filterIsCounted(filter) ? ghosts.filter((event) => matches(filter, event)) : [];
            return (await engine.triage.count(filter)) + more.length;
          },
        },
      };
    },
  },
  brokenTriage(
    'counts that start with the process',
    'has the same counts after a restart',
    (triage, storage) => {
      const before = [...storage.parked.values()];
      return {
        async count(filter) {
          const unknown = filterIsCounted(filter) ? before.filter((event) => matches(filter, event)) : [];
          return (await triage.count(filter)) - unknown.length;
        },
      };
    },
  ),
  brokenBroker(
    'a list of waiting events of all tenants',
    'lists waiting events by state, key and tenant',
    (broker) => ({
      waiting(topic, page, { tenant: _, ...question } = {}) {
        return broker.waiting(topic, page, question);
      },
    }),
  ),
  brokenBroker(
    'waiting events in one order only',
    'lists waiting events by due time, in pages',
    (broker) => ({
      waiting(topic, page, { order: _, ...question } = {}) {
        return broker.waiting(topic, page, question);
      },
    }),
  ),
  brokenBroker(
    'leased events that are due',
    'counts events by the time until they are due',
    (broker, storage) => ({
      async due(topic, bounds) {
        const [first = 0, ...counts] = await broker.due(topic, bounds);
        const leased = [...storage.topics.get(topic)!.rows.values()].filter(({ lease }) => lease);
        return [first + leased.length, ...counts];
      },
    }),
  ),
  brokenBroker(
    'any order is an order',
    'refuses a question about waiting events that it does not understand',
    (broker) => ({
      waiting(topic, page, { order, ...question } = {}) {
        return broker.waiting(topic, page, order === 'due' ? { ...question, order } : question);
      },
    }),
  ),
  brokenBroker('counts of no time', 'counts waiting events by state', (broker) => ({
    counts: async (topic) => ({ ...(await broker.counts(topic)), asOf: 0 }),
  })),
];
