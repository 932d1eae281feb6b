import type { NewEvent, Triage } from '@holdfast/contracts';
import type { MemoryStorage } from '@holdfast/contracts/memory';
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

export const brokenTriages: readonly BrokenEngine[] = [
  brokenTriage('an empty filter that selects everything', 'refuses to replay everything', ({ replays }) => ({
    replays: {
      ...replays,
      begin: (request, act) => replays.begin({ ...request, filter: { ...request.filter, from: 0 } }, act),
    },
  })),
  brokenTriage(
    'an edit that forgets the original',
    'keeps the original and the difference of an edit',
    (triage) => ({
      async get(id) {
        const event = await triage.get(id);
        return event && { ...event, original: undefined };
      },
    }),
  ),
  brokenTriage('pages that overlap', 'lists in pages, each event once, the latest first', (triage) => ({
    async list(filter, { limit, cursor }) {
      const start = Number(cursor ?? 0);
      const { items } = await triage.list(filter, { limit: 1000 });
      const isLast = start + limit >= items.length;
      return {
        items: items.slice(Math.max(0, start - 1), start + limit),
        cursor: isLast ? undefined : `${start + limit}`,
      };
    },
  })),
  brokenTriage('retention in silence', 'counts down retention, and never removes in silence', (triage) => ({
    async audit(page) {
      const { items, cursor } = await triage.audit(page);
      return { items: items.filter(({ what }) => what !== 'retention'), cursor };
    },
  })),
  brokenTriage(
    'an event in two operations',
    'gives an event to one operation only',
    ({ replays }, storage) => ({
      replays: {
        ...replays,
        async select(id, limit) {
          for (const [key, event] of storage.parked)
            storage.parked.set(key, { ...event, operation: undefined });
          return replays.select(id, limit);
        },
      },
    }),
  ),
  brokenTriage(
    'a release that is not remembered',
    'goes on after a crash, and releases none twice',
    (triage, storage) => ({
      ...triage,
      async resolve(replayed) {
        const resolved = await triage.resolve(replayed);
        const { id, operation } = replayed[0]!;
        const event = storage.parked.get(id);
        if (event) storage.parked.set(id, { ...event, status: 'parked', operation });
        return resolved;
      },
    }),
  ),
  brokenTriage(
    'a release that is noted before it is made',
    'loses nothing of a replay when it dies between two writes',
    ({ replays, ...triage }, storage) => ({
      replays: {
        ...replays,
        async release(id, limit, publish) {
          const events: [string, readonly NewEvent[]][] = [];
          const released = await replays.release(
            id,
            limit,
            async (topic, chosen) => void events.push([topic, chosen]),
          );
          // One more write, at which the process can be stopped.
          await triage.setRule(
            { name: 'any', filter: { topic: 'any' }, action: 'notify' },
            { who: 'x', why: 'x' },
          );
          storage.rules.clear();
          for (const [topic, chosen] of events) await publish(topic, chosen);
          return released;
        },
      },
    }),
  ),
  brokenTriage('two who move an operation', 'lets one of two processes move an operation', ({ replays }) => ({
    replays: {
      ...replays,
      async move(id, _, change) {
        return replays.move(id, (await replays.get(id))!.version, change);
      },
    },
  })),
  brokenTriage('a discard without a reason', 'discards with a reason, and restores', (triage) => ({
    discard: (ids, act) => triage.discard(ids, { who: act.who || 'somebody', why: act.why }),
  })),
  brokenTriage('groups of one kind', 'groups by fingerprint, the largest first', (triage) => ({
    async groups(filter, page) {
      const { items } = await triage.groups(filter, { limit: 1000 });
      return { items: items.toReversed().slice(0, page.limit), cursor: undefined };
    },
  })),
  {
    fault: 'limits that are taken one by one',
    found: 'takes from all limits of a request or from none',
    alter: (engine) => ({
      ...engine,
      rateLimits: {
        ...engine.rateLimits,
        async take(requests) {
          const answers = [];
          for (const request of requests) {
            const parts = await engine.rateLimits.take(request.map((take) => [take]));
            const allowed = parts.every((part) => part.allowed);
            const waitMs = Math.max(...parts.map((part) => part.waitMs));
            answers.push({ allowed, waitMs, left: parts.flatMap(({ left }) => left) });
          }
          return answers;
        },
      },
    }),
  },
];
