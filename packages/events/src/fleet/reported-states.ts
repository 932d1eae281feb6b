import type { PresentProcess } from '@holdfast/contracts';
import type { PolicyState } from 'holdfast';
import type { ConsumerState } from '../consumer/consumer.ts';

/** A state from the report of a process, together with that process. */
export type Reported<T> = T & { readonly process: PresentProcess };

/** Returns the consumers of all processes. If `topic` is given, only the consumers of this topic. */
export function consumersOf(processes: readonly PresentProcess[], topic?: string): Reported<ConsumerState>[] {
  return processes
    .flatMap((process) =>
      (process.consumers as readonly ConsumerState[]).map((each) => ({ ...each, process })),
    )
    .filter((each) => topic === undefined || each.topic === topic);
}

/** Returns the policies of all processes. If `name` is given, only the policies with this name. */
export function policiesOf(processes: readonly PresentProcess[], name?: string): Reported<PolicyState>[] {
  return processes
    .flatMap((process) => (process.policies as readonly PolicyState[]).map((each) => ({ ...each, process })))
    .filter((each) => name === undefined || each.name === name);
}

/** Returns the name of a process for people: `checkout@web-1 (4711)`. */
export function processName({ service, host, pid }: PresentProcess): string {
  return `${service}@${host} (${pid})`;
}

/**
 * True: at least one process runs `maintenance`, which continues operations (such as replays) that no command
 * runs.
 */
export function isMaintained(processes: readonly PresentProcess[]): boolean {
  return processes.some(({ maintains }) => maintains === true);
}
