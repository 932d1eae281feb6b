import { type Act, type Audit, assertUndoable, type Controls, type Triage } from '@holdfast/contracts';
import type { MemoryEngine, MemoryStorage } from '@holdfast/contracts/memory';
import { type BrokenEngine, extraWrite } from './broken-engine.ts';

function brokenAudit(
  fault: string,
  found: string,
  alter: (audit: Audit, storage: MemoryStorage) => Partial<Audit>,
): BrokenEngine {
  return {
    fault,
    found,
    alter: (engine, storage) => ({
      ...engine,
      audit: { ...engine.audit, ...alter(engine.audit, storage) },
    }),
  };
}

function brokenAct(
  fault: string,
  found: string,
  alter: (triage: Triage, storage: MemoryStorage, engine: MemoryEngine) => Partial<Triage>,
): BrokenEngine {
  return {
    fault,
    found,
    alter: (engine, storage) => ({
      ...engine,
      triage: { ...engine.triage, ...alter(engine.triage, storage, engine) },
    }),
  };
}

function brokenControls(
  fault: string,
  found: string,
  alter: (controls: Controls, storage: MemoryStorage) => Partial<Controls>,
): BrokenEngine {
  return {
    fault,
    found,
    alter: (engine, storage) => ({
      ...engine,
      controls: { ...engine.controls, ...alter(engine.controls, storage) },
    }),
  };
}

/** Removes what the latest act was undone from, or made of. */
function forgetBefore(storage: MemoryStorage): void {
  const last = storage.audit.pop();
  if (last) storage.audit.push({ ...last, before: undefined });
}

function withoutUndo({ who, why }: Act): Act {
  return { who, why };
}

export const brokenAudits: readonly BrokenEngine[] = [
  brokenAudit('an entry without the state before', 'keeps an act as it was recorded', (audit) => ({
    record: ({ before: _, ...entry }) => audit.record(entry),
  })),
  brokenAudit(
    'a list that has no end',
    'lists by person, act, subject and time, the latest first, in pages',
    (audit) => ({ list: ({ to: _, ...question }, page) => audit.list(question, page) }),
  ),
  brokenAudit('a count of what is named', 'keeps the first 100 subjects, and the number of all', (audit) => ({
    record: (entry) => audit.record({ ...entry, subjects: entry.subjects.slice(0, 100) }),
  })),
  brokenAudit(
    'an entry with a long name that is cut',
    'refuses an entry or a question that is not well formed',
    (audit) => ({
      record: (entry) => audit.record({ ...entry, what: entry.what.slice(0, 100) }),
    }),
  ),
  brokenAudit(
    'an undo that can be made again',
    'notes an undone act on both entries, once',
    (audit, storage) => ({
      record(entry) {
        const undone = storage.audit.findIndex(({ id }) => id === entry.undoes);
        if (undone >= 0) storage.audit[undone] = { ...storage.audit[undone]!, undoneBy: undefined };
        return audit.record(entry);
      },
    }),
  ),
  {
    fault: 'an audit log that ends with the process',
    found: 'remembers entries after a restart',
    alter(engine, storage) {
      storage.audit.length = 0;
      return engine;
    },
  },
  brokenAct('an edit of nobody', 'says who edited an event, and why', (triage) => ({
    edit: (id, edit, { why }) => triage.edit(id, edit, { who: 'the console', why }),
  })),
  brokenAct(
    'a repeated request with an entry of its own',
    'says who began an operation of any kind, on which events',
    ({ operations }, storage, { audit }) => ({
      operations: {
        ...operations,
        async begin(request, act, id) {
          if (id !== undefined && storage.operations.has(id))
            await audit.record({ ...act, what: request.kind, subjects: [`operation:${id}`] });
          return operations.begin(request, act, id);
        },
      },
    }),
  ),
  brokenAct(
    'a rate that cannot be set back',
    'says who stopped an operation, and who changed its rate',
    ({ operations }, storage) => ({
      operations: {
        ...operations,
        async move(id, version, change) {
          const moved = await operations.move(id, version, change);
          if (moved && change.act) forgetBefore(storage);
          return moved;
        },
      },
    }),
  ),
  brokenAct(
    'a removed rule that nobody can set again',
    'says who set and removed a rule, with the rule before',
    (triage, storage) => ({
      async removeRule(name, act) {
        const removed = await triage.removeRule(name, act);
        if (removed) forgetBefore(storage);
        return removed;
      },
    }),
  ),
  {
    fault: 'retention in silence',
    found: 'never removes a parked event in silence',
    alter: (engine, storage) => ({
      ...engine,
      async sweep(limit) {
        const entries = [...storage.audit];
        const swept = await engine.sweep(limit);
        storage.audit.splice(0, Infinity, ...entries);
        return swept;
      },
    }),
  },
  brokenAct(
    'an act that undoes nothing',
    'undoes an act only once, and changes nothing if it cannot',
    (triage) => ({ edit: (id, edit, act) => triage.edit(id, edit, withoutUndo(act)) }),
  ),
  brokenAct(
    'an entry that is written after the act',
    'writes an act with its entry, or neither, when it dies',
    (triage, storage, engine) => ({
      async edit(id, edit, act) {
        const edited = await triage.edit(id, edit, act);
        const entry = storage.audit.pop();
        await extraWrite(engine);
        if (entry) storage.audit.push(entry);
        return edited;
      },
    }),
  ),
  brokenControls(
    'a control that forgets what it replaced',
    'says who set and removed a control, with the control before',
    (controls, storage) => ({
      async impose(control, act, forMs) {
        const imposed = await controls.impose(control, act, forMs);
        forgetBefore(storage);
        return imposed;
      },
    }),
  ),
  brokenControls(
    'a control that is lifted before the entry is refused',
    'imposes and lifts nothing if an act cannot be undone',
    (controls, storage) => ({
      async lift(id, act) {
        const lifted = await controls.lift(id, withoutUndo(act));
        if (act.undoes !== undefined)
          assertUndoable(
            act.undoes,
            storage.audit.find((entry) => entry.id === act.undoes),
          );
        return lifted;
      },
    }),
  ),
  ...(['retryNow', 'unblock'] as const).map(
    (name): BrokenEngine => ({
      fault: `${name} in silence`,
      found: name === 'retryNow' ? 'says who made events due now' : 'says who unblocked a key',
      alter: (engine, storage) => ({
        ...engine,
        broker: {
          ...engine.broker,
          async [name](topic: string, ids: readonly string[], act: Act) {
            const entries = [...storage.audit];
            const changed = await engine.broker[name](topic, ids, act);
            storage.audit.splice(0, Infinity, ...entries);
            return changed;
          },
        },
      }),
    }),
  ),
];
