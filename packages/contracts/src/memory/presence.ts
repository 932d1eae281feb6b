import {
  assertReport,
  forgottenAfterMs,
  type Presence,
  type PresentProcess,
  processesMax,
  sortedProcesses,
} from '../presence.ts';
import { removeExpired, type SharedState } from './shared-state.ts';

export function memoryPresence(shared: SharedState): Presence {
  const { processes } = shared.storage;

  return {
    async report(process) {
      const json = assertReport(process);
      shared.write((now) => {
        forgetProcesses(shared, now, Infinity);
        // Each new report is put at the end of the Map, so the first process in the Map has the oldest
        // report.
        processes.delete(process.id);
        if (processes.size >= processesMax) processes.delete(processes.keys().next().value!);
        processes.set(process.id, { ...JSON.parse(json), heardAt: now });
      });
    },

    async leave(id) {
      shared.write(() => processes.delete(id));
    },

    async processes() {
      const now = shared.now();
      const present = [...processes.values()].filter((process) => forgottenAt(process) > now);
      return sortedProcesses(present);
    },
  };
}

export function forgetProcesses({ storage }: SharedState, now: number, limit: number): number {
  return removeExpired(storage.processes, forgottenAt, now, limit).length;
}

function forgottenAt({ heardAt }: PresentProcess): number {
  return heardAt + forgottenAfterMs;
}
