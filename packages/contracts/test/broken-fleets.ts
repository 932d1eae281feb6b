import {
  type Broker,
  type Control,
  type Controls,
  controlId,
  type Presence,
  processesMax,
} from '@holdfast/contracts';
import type { MemoryStorage, MemoryTransaction } from '@holdfast/contracts/memory';
import type { BrokenEngine } from './broken-engine.ts';

function brokenPresence(
  fault: string,
  found: string,
  alter: (presence: Presence, storage: MemoryStorage) => Partial<Presence>,
): BrokenEngine {
  return {
    fault,
    found,
    alter: (engine, storage) => ({
      ...engine,
      presence: { ...engine.presence, ...alter(engine.presence, storage) },
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
    alter(engine, storage) {
      const controls = { ...engine.controls, ...alter(engine.controls, storage) };
      return { ...engine, controls, broker: { ...engine.broker, controls } };
    },
  };
}

function brokenLease(
  fault: string,
  found: string,
  alter: (broker: Broker<MemoryTransaction>, storage: MemoryStorage) => Broker<MemoryTransaction>['lease'],
): BrokenEngine {
  return {
    fault,
    found,
    alter: (engine, storage) => ({
      ...engine,
      broker: { ...engine.broker, lease: alter(engine.broker, storage) },
    }),
  };
}

/** Takes the pause of retries away while `lease` runs. */
async function unpaused<T>(storage: MemoryStorage, topic: string, lease: () => Promise<T>): Promise<T> {
  const id = controlId({ kind: 'pause', topic, only: 'retries' });
  const pause = storage.controls.get(id);
  storage.controls.delete(id);
  const leased = await lease();
  if (pause) storage.controls.set(id, pause);
  return leased;
}

/** Processes, controls of policies, and the pause of retries. */
export const brokenFleets: readonly BrokenEngine[] = [
  brokenPresence(
    'a first report that stays',
    'lists a process with its latest report',
    (presence, storage) => ({
      async report(process) {
        if (!storage.processes.has(process.id)) await presence.report(process);
      },
    }),
  ),
  brokenPresence('processes in any order', 'lists processes by host, pid and id', (presence) => ({
    processes: async () => (await presence.processes()).toReversed(),
  })),
  brokenPresence(
    'processes that never end',
    'forgets a process 10 s after its last report',
    (presence, storage) => ({
      async report(process) {
        await presence.report(process);
        storage.processes.set(process.id, { ...process, heardAt: Infinity });
      },
    }),
  ),
  brokenPresence('a process that cannot leave', 'removes a process that leaves', () => ({
    async leave() {},
  })),
  brokenPresence(
    'a report that is cut to fit',
    'refuses a report that is too large or not well formed, and keeps the last one',
    (presence) => ({
      report: (process) =>
        presence.report(process).catch(() => presence.report({ ...process, policies: [] })),
    }),
  ),
  brokenPresence(
    'a list that is closed when it is full',
    'keeps at most 1000 processes, without the oldest',
    (presence, storage) => ({
      async report(process) {
        if (storage.processes.size < processesMax) await presence.report(process);
      },
    }),
  ),
  {
    fault: 'processes that others do not see',
    found: 'shows processes to every process',
    alter(engine, storage) {
      storage.processes.clear();
      return engine;
    },
  },
  brokenControls(
    'controls of topics alone',
    'keeps controls of policies, with who set them and since when',
    (controls) => ({
      async active() {
        const sheet = await controls.active();
        return { ...sheet, controls: sheet.controls.filter(({ control }) => 'topic' in control) };
      },
    }),
  ),
  brokenControls(
    'a control of a policy that is no news',
    'changes the version with every control of a policy',
    (controls, storage) => ({
      async impose(control, act, forMs) {
        const { controlsVersion } = storage;
        const imposed = await controls.impose(control, act, forMs);
        if ('policy' in control) storage.controlsVersion = controlsVersion;
        return imposed;
      },
    }),
  ),
  brokenControls(
    'a breaker of all targets or none',
    'replaces a control of a policy that has the same id',
    (controls) => ({
      impose(control, act, forMs) {
        if (control.kind !== 'breaker') return controls.impose(control, act, forMs);
        const { target: _, ...breaker } = control;
        return controls.impose(breaker, act, forMs);
      },
    }),
  ),
  brokenControls('a control that stays', 'ends a control of a policy by itself', (controls) => ({
    impose: (control, act, forMs) => controls.impose(control, act, 'policy' in control ? undefined : forMs),
  })),
  brokenControls('any mode is a mode', 'refuses a control that nobody could obey', (controls) => ({
    impose: (control, act, forMs) =>
      controls.impose(control.kind === 'mode' ? { ...control, mode: 'observe' } : control, act, forMs),
  })),
  brokenControls(
    'a control of this process alone',
    'keeps controls of policies for every process',
    (controls, storage) => {
      const mine = new Map<string, Awaited<ReturnType<Controls['impose']>>>();
      return {
        async impose(control: Control, act, forMs) {
          const imposed = await controls.impose(control, act, forMs);
          if (!('policy' in control)) return imposed;
          storage.controls.delete(imposed.id);
          mine.set(imposed.id, imposed);
          return imposed;
        },
        async active() {
          const sheet = await controls.active();
          return { ...sheet, controls: [...sheet.controls, ...mine.values()] };
        },
      };
    },
  ),
  brokenControls(
    'one pause in place of the other',
    'keeps a pause of retries beside a pause of everything',
    (controls, storage) => ({
      impose(control, act, forMs) {
        if (control.kind === 'pause' && !('only' in control))
          storage.controls.delete(controlId({ ...control, only: 'retries' }));
        return controls.impose(control, act, forMs);
      },
    }),
  ),
  brokenLease(
    'a pause of retries that is ignored',
    'leases first attempts only while the retries of a topic are paused',
    (broker, storage) => (topic, request) => unpaused(storage, topic, () => broker.lease(topic, request)),
  ),
  brokenLease(
    'suspects that are no retries',
    'keeps suspects waiting while the retries of a topic are paused',
    (broker, storage) => (topic, request) =>
      request.suspects
        ? unpaused(storage, topic, () => broker.lease(topic, request))
        : broker.lease(topic, request),
  ),
  brokenLease(
    'retries that are paused as if they were not there',
    'does not let a key overtake its retry while retries are paused',
    (broker, storage) => async (topic, request) => {
      const { rows } = storage.topics.get(topic)!;
      const isPaused = storage.controls.has(controlId({ kind: 'pause', topic, only: 'retries' }));
      const all = [...rows];
      if (isPaused) for (const [id, { attempts }] of all) if (attempts > 0) rows.delete(id);
      const leased = await broker.lease(topic, request);
      rows.clear();
      for (const [id, row] of all) rows.set(id, row);
      return leased;
    },
  ),
];
