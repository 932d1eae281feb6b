import type { Journal, JournalEntry } from '@holdfast/contracts';
import type { MemoryStorage, MemoryTransaction } from '@holdfast/contracts/memory';
import type { BrokenEngine } from './broken-engine.ts';

type MemoryJournal = Journal<MemoryTransaction>;
type Entry = JournalEntry<MemoryTransaction>;

function brokenJournal(
  fault: string,
  found: string,
  alter: (journal: MemoryJournal, storage: MemoryStorage) => Partial<MemoryJournal>,
): BrokenEngine {
  return {
    fault,
    found,
    alter: (engine, storage) => ({
      ...engine,
      journal: { ...engine.journal, ...alter(engine.journal, storage) },
    }),
  };
}

/** Changes each entry on its way to the journal. */
function onRecord(change: (entry: Entry, storage: MemoryStorage) => Entry) {
  return (journal: MemoryJournal, storage: MemoryStorage): Partial<MemoryJournal> => ({
    record: (entries) => journal.record(entries.map((entry) => change(entry, storage))),
  });
}

export const brokenJournals: readonly BrokenEngine[] = [
  brokenJournal(
    'progress without a fence',
    'gives back what a dead worker had, with one death more',
    onRecord((entry, storage) => {
      if (entry.kind !== 'progress') return entry;
      const token = storage.journal.rows.get(entry.lease.id)?.lease?.token ?? entry.lease.token;
      return { ...entry, lease: { ...entry.lease, token } };
    }),
  ),
  brokenJournal(
    'a suspension that does not look for signals',
    'never sleeps over a signal, in whatever order they come',
    onRecord((entry) =>
      entry.kind === 'progress' && entry.next?.kind === 'suspend'
        ? { ...entry, next: { ...entry.next, revision: Infinity } }
        : entry,
    ),
  ),
  brokenJournal(
    'another input under a known id is a repeat',
    'accepts an assembly once, and tells a repeat from another input',
    (journal) => ({
      async record(entries) {
        const results = await journal.record(entries);
        return results.map((result) => (result.kind === 'mismatch' ? { kind: 'repeated' } : result));
      },
    }),
  ),
  brokenJournal(
    'a dead worker keeps what it has',
    'gives back what a dead worker had, with one death more',
    (journal) => ({ claim: (request) => journal.claim({ ...request, leaseMs: 1e12 }) }),
  ),
  brokenJournal(
    'a heartbeat that extends nothing',
    'keeps assemblies with a worker that sends heartbeats',
    (journal, storage) => ({
      async heartbeat(worker, leaseMs) {
        const endsAt = storage.journal.workers.get(worker);
        const beat = await journal.heartbeat(worker, leaseMs);
        if (endsAt !== undefined) storage.journal.workers.set(worker, endsAt);
        return beat;
      },
    }),
  ),
  brokenJournal(
    'a worker gets programs that it does not have',
    'leases only programs and versions that the worker has',
    (journal, storage) => ({
      claim: (request) =>
        journal.claim({
          ...request,
          programs: [...storage.journal.rows.values()].map(({ start: { name, version } }) => ({
            name,
            version,
          })),
        }),
    }),
  ),
  brokenJournal(
    'a cancelled sleeper hears of it when it wakes',
    'stops an assembly in each state but a committed one',
    (journal, storage) => ({
      async requestStop(requests) {
        const dueAt = requests.map(({ id }) => storage.journal.rows.get(id)?.dueAt);
        const results = await journal.requestStop(requests);
        requests.forEach(({ id }, index) => {
          const row = storage.journal.rows.get(id);
          if (row && dueAt[index] !== undefined) row.dueAt = dueAt[index];
        });
        return results;
      },
    }),
  ),
  brokenJournal(
    'a request to stop after the pivot is taken',
    'stops an assembly in each state but a committed one',
    onRecord((entry) => (entry.kind === 'progress' ? { ...entry, commits: false } : entry)),
  ),
  brokenJournal(
    'a signal that is stored twice',
    'stores a signal once, and says what became of it',
    (journal) => {
      let count = 0;
      return {
        signal: (signals) =>
          journal.signal(signals.map((each) => ({ ...each, id: `${each.id}/${++count}` }))),
      };
    },
  ),
  brokenJournal(
    'limits of queues that count one worker only',
    'leases at most as many of a queue as run at the same time, in all workers',
    (journal, storage) => ({
      async claim(request) {
        const limits = new Map(storage.journal.queues);
        const others = [...storage.journal.rows.values()].some(
          ({ lease }) => lease && lease.worker !== request.worker,
        );
        if (others) storage.journal.queues.clear();
        const claimed = await journal.claim(request);
        for (const [name, limit] of limits) storage.journal.queues.set(name, limit);
        return claimed;
      },
    }),
  ),
  brokenJournal(
    'an effect that stays when its step fails',
    'commits a step and its effect together',
    onRecord((entry, storage) => {
      if (entry.kind !== 'progress' || !entry.transaction) return entry;
      const { run } = entry.transaction;
      const leaky = (tx: MemoryTransaction) => {
        const put = (name: string, value: string) => {
          storage.effects.set(name, value);
          tx.put(name, value);
        };
        return run({ ...tx, put });
      };
      return { ...entry, transaction: { ...entry.transaction, run: leaky } };
    }),
  ),
  brokenJournal(
    'children that start although the lease is lost',
    'starts and signals others in the same write, or not at all',
    (journal) => ({
      async record(entries) {
        const starts = entries.flatMap((entry) => (entry.kind === 'progress' ? (entry.starts ?? []) : []));
        await journal.record(starts.map((start) => ({ kind: 'start', start })));
        return journal.record(entries);
      },
    }),
  ),
  brokenJournal(
    'a parked assembly that a signal wakes',
    'parks for people until the patience of the customer ends',
    (journal, storage) => ({
      async signal(signals) {
        const results = await journal.signal(signals);
        for (const { to } of signals) Object.assign(storage.journal.rows.get(to) ?? {}, { dueAt: 0 });
        return results;
      },
    }),
  ),
  brokenJournal(
    'an ended assembly is never removed',
    'removes an ended assembly when its time is over, and not before',
    (journal) => ({
      record: (entries) =>
        journal.record(
          entries.map((entry) =>
            entry.kind === 'start' ? { ...entry, start: { ...entry.start, keepMs: 1e12 } } : entry,
          ),
        ),
    }),
  ),
  brokenJournal(
    'groups that forget the reason',
    'groups parked assemblies by program, reason and error, the largest group first',
    (journal) => ({
      async parkedGroups(limit) {
        const groups = await journal.parkedGroups(limit);
        return groups.map((group) => ({ ...group, because: 'failed' }));
      },
    }),
  ),
  brokenJournal(
    'a stop request that is not in the audit log',
    'says who changed, copied, told and stopped an assembly',
    (journal) => ({
      requestStop: (requests) =>
        journal.requestStop(
          requests.map(({ id, stop: { because, message } }) => ({ id, stop: { because, message } })),
        ),
    }),
  ),
];
