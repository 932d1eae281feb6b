import type { PresentProcess } from '@holdfast/contracts';
import type { PolicyState } from 'holdfast';
import type { ConsumerState } from '../consumer/consumer.ts';

/** A state that a process has reported, with the process. */
export type Reported<T> = T & { readonly process: PresentProcess };

/** The consumers of all processes; of one topic if `topic` is given. */
export function consumersOf(processes: readonly PresentProcess[], topic?: string): Reported<ConsumerState>[] {
  return processes
    .flatMap((process) =>
      (process.consumers as readonly ConsumerState[]).map((each) => ({ ...each, process })),
    )
    .filter((each) => topic === undefined || each.topic === topic);
}

/** The policies of all processes; those with one name if `name` is given. */
export function policiesOf(processes: readonly PresentProcess[], name?: string): Reported<PolicyState>[] {
  return processes
    .flatMap((process) => (process.policies as readonly PolicyState[]).map((each) => ({ ...each, process })))
    .filter((each) => name === undefined || each.name === name);
}

/** A process as a person knows it: `checkout@web-1 (4711)`. */
export function processName({ service, host, pid }: PresentProcess): string {
  return `${service}@${host} (${pid})`;
}

/** Whether a process that reports runs maintenance, which moves operations on that no command runs. */
export function isMaintained(processes: readonly PresentProcess[]): boolean {
  return processes.some(({ maintains }) => maintains === true);
}
