import type { Triage } from '@holdfast/contracts';
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
