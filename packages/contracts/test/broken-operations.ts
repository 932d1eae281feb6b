import type { Operation, Operations, ParkedEvent } from '@holdfast/contracts';
import type { MemoryEngine, MemoryStorage } from '@holdfast/contracts/memory';
import { type BrokenEngine, extraWrite } from './broken-engine.ts';

function brokenOperations(
  fault: string,
  found: string,
  alter: (operations: Operations, storage: MemoryStorage, engine: MemoryEngine) => Partial<Operations>,
): BrokenEngine {
  return {
    fault,
    found,
    alter(engine, storage) {
      const { operations } = engine.triage;
      const altered = { ...operations, ...alter(operations, storage, engine) };
      return { ...engine, triage: { ...engine.triage, operations: altered } };
    },
  };
}

function changeAll(storage: MemoryStorage, change: Partial<ParkedEvent>): void {
  for (const [id, event] of storage.parked) storage.parked.set(id, { ...event, ...change });
}

function put(storage: MemoryStorage, id: string, change: Partial<Operation>): void {
  const operation = storage.operations.get(id);
  if (operation) storage.operations.set(id, { ...operation, ...change });
}

function kindOf(storage: MemoryStorage, id: string): string | undefined {
  return storage.operations.get(id)?.request.kind;
}

export const brokenOperationEngines: readonly BrokenEngine[] = [
  brokenOperations(
    'an empty filter that selects everything',
    'refuses to change everything',
    (operations) => ({
      begin: (request, act, id) =>
        operations.begin(
          request.kind === 'undo' ? request : { ...request, filter: { ...request.filter, from: 0 } },
          act,
          id,
        ),
    }),
  ),
  brokenOperations(
    'an act that nobody answers for',
    'refuses an act without a person or a reason',
    (operations) => ({
      begin: (request, act, id) =>
        operations.begin(request, { who: `by ${act?.who}`, why: `because ${act?.why}` }, id),
    }),
  ),
  brokenOperations(
    'a keep for any time',
    'refuses an operation that it does not understand',
    (operations) => ({
      begin: (request, act, id) =>
        operations.begin(
          request.kind === 'keep' ? { ...request, keepMs: Math.abs(request.keepMs) || 0 } : request,
          act,
          id,
        ),
    }),
  ),
  brokenOperations(
    'one step for everything',
    'discards in steps, and counts what it has changed',
    (operations) => ({
      apply: (id) => operations.apply(id, 1000),
    }),
  ),
  brokenOperations(
    'a restore that looks for parked events',
    'restores what was discarded, whatever status the filter names',
    (operations, storage) => ({
      async apply(id, limit) {
        const request = storage.operations.get(id)?.request;
        return request?.kind === 'restore' && request.filter.status === 'parked'
          ? 0
          : operations.apply(id, limit);
      },
    }),
  ),
  brokenOperations(
    'a keep for half of its time',
    'keeps events until keepMs after the operation began',
    (operations) => ({
      begin: (request, act, id) =>
        operations.begin(
          request.kind === 'keep' ? { ...request, keepMs: request.keepMs / 2 } : request,
          act,
          id,
        ),
    }),
  ),
  brokenOperations(
    'a keep that is forgotten',
    'counts down retention, and keeps what is to be kept',
    (operations, storage) => ({
      async apply(id, limit) {
        const before = new Map(storage.parked);
        const changed = await operations.apply(id, limit);
        for (const [eventId, event] of before) storage.parked.set(eventId, event);
        return changed;
      },
    }),
  ),
  brokenOperations(
    'an operation without a moment',
    'covers only events that were parked before it began',
    (operations, storage) => ({
      async apply(id, limit) {
        put(storage, id, { startedAt: Infinity });
        return operations.apply(id, limit);
      },
    }),
  ),
  brokenOperations(
    'a filter that has no end',
    'covers only events that were parked before the end of its filter',
    (operations) => ({
      begin(request, act, id) {
        if (request.kind === 'undo') return operations.begin(request, act, id);
        const { to: _, ...filter } = request.filter;
        return operations.begin({ ...request, filter }, act, id);
      },
    }),
  ),
  brokenOperations(
    'a repeated request that begins again',
    'begins once, however often the same id is given',
    (operations, storage) => ({
      begin: (request, act, id) =>
        operations.begin(request, act, id !== undefined && storage.operations.has(id) ? undefined : id),
    }),
  ),
  brokenOperations(
    'a discard that takes events from a replay',
    'leaves the events of a replay alone',
    (operations, storage) => ({
      apply(id, limit) {
        changeAll(storage, { operation: undefined });
        return operations.apply(id, limit);
      },
    }),
  ),
  brokenOperations(
    'an operation that starts from the beginning in every step',
    'changes each event once, even if it is changed back meanwhile',
    (operations, storage) => ({
      apply(id, limit) {
        storage.positions.delete(id);
        return operations.apply(id, limit);
      },
    }),
  ),
  brokenOperations(
    'a keep that forgets what was before',
    'undoes a discard, a restore and a keep by their ids',
    (operations, storage) => ({
      async apply(id, limit) {
        const changed = await operations.apply(id, limit);
        for (const [eventId, { operation }] of storage.changes)
          storage.changes.set(eventId, { operation, removedAt: storage.parked.get(eventId)!.removedAt });
        return changed;
      },
    }),
  ),
  brokenOperations('an undo in one step', 'undoes in steps', (operations, storage) => ({
    apply: (id, limit) => operations.apply(id, kindOf(storage, id) === 'undo' ? 1000 : limit),
  })),
  brokenOperations(
    'an undo that overrides what others did',
    'leaves alone in an undo what was changed since',
    (operations, storage) => {
      const changedBy = new Map<string, string[]>();
      return {
        async apply(id, limit) {
          const request = storage.operations.get(id)?.request;
          const of = request?.kind === 'undo' ? request.of : '';
          for (const each of changedBy.get(of) ?? [])
            storage.changes.set(each, { operation: of, removedAt: 0 });
          changedBy.delete(of);
          const changed = await operations.apply(id, limit);
          const mine = [...storage.changes].filter(([, { operation }]) => operation === id);
          changedBy.set(
            id,
            mine.map(([each]) => each),
          );
          return changed;
        },
      };
    },
  ),
  brokenOperations(
    'an undo that can be made again',
    'refuses to undo twice, or what cannot be undone',
    (operations, storage) => ({
      begin(request, act, id) {
        for (const [each, { request: stored }] of storage.operations)
          if (stored.kind === 'undo' && !storage.operations.has(id ?? ''))
            put(storage, each, { request: { kind: 'undo', of: 'another' } });
        return operations.begin(request, act, id);
      },
    }),
  ),
  brokenOperations(
    'a change that cannot be stopped',
    'stops a change in the middle, and what it has changed stays',
    (operations, storage) => ({
      async apply(id, limit) {
        const { stage } = storage.operations.get(id)!;
        put(storage, id, { stage: 'applying' });
        const changed = await operations.apply(id, limit);
        put(storage, id, { stage });
        return changed;
      },
    }),
  ),
  brokenOperations(
    'a list of all operations',
    'lists operations by kind, and those that have not ended',
    (operations) => ({ list: (_, page) => operations.list({}, page) }),
  ),
  brokenOperations(
    'progress that is written apart from the change',
    'does each change once when it dies in the middle of an operation',
    (operations, storage, engine) => ({
      async apply(id, limit) {
        const before = storage.operations.get(id)!.counts;
        const changed = await operations.apply(id, limit);
        const { counts } = storage.operations.get(id)!;
        put(storage, id, { counts: before });
        await extraWrite(engine);
        put(storage, id, { counts });
        return changed;
      },
    }),
  ),
  brokenOperations(
    'a rate that cannot be changed',
    'changes the rate of a replay while it runs',
    (operations) => ({
      move: (id, version, { rate: _, ...change }) => operations.move(id, version, change),
    }),
  ),
  brokenOperations(
    'an event in two operations',
    'gives an event to one operation only',
    (operations, storage) => ({
      select(id, limit) {
        changeAll(storage, { operation: undefined });
        return operations.select(id, limit);
      },
    }),
  ),
  brokenOperations(
    'a release that is noted before it is made',
    'loses nothing of a replay when it dies between two writes',
    (operations, _, engine) => ({
      async release(id, limit, publish) {
        const events: Parameters<typeof publish>[] = [];
        const released = await operations.release(id, limit, async (...published) => {
          events.push(published);
        });
        await extraWrite(engine);
        for (const published of events) await publish(...published);
        return released;
      },
    }),
  ),
  brokenOperations(
    'two who move an operation',
    'lets one of two processes move an operation',
    (operations) => ({
      async move(id, _, change) {
        return operations.move(id, (await operations.get(id))!.version, change);
      },
    }),
  ),
  {
    fault: 'a replay that leaves no trace on its events',
    found: 'lists the events of a replay with their outcome',
    alter: (engine, storage) => ({
      ...engine,
      triage: {
        ...engine.triage,
        async resolve(replayed) {
          const resolved = await engine.triage.resolve(replayed);
          for (const { id } of replayed)
            storage.parked.set(id, { ...storage.parked.get(id)!, replayedBy: undefined });
          return resolved;
        },
      },
    }),
  },
];
