import { OptionsError } from 'holdfast';
import { TooLargeError } from './contract-errors.ts';
import { assertName } from './for-engines.ts';

/**
 * The list of running processes. A process that uses the store reports every 2 s what its policies and consumers do,
 * so that a console in another process can show it.
 */
export interface Presence {
  /** Stores the report of a process, in place of its last one. A report is forgotten 10 s after it was stored. */
  report(process: ProcessReport): Promise<void>;
  /** Removes the report of a process that stops. */
  leave(id: string): Promise<void>;
  /** Lists the processes whose reports are not forgotten, by host, pid and id. */
  processes(): Promise<readonly PresentProcess[]>;
}

/** How long a report is valid, by the store's clock. */
export const forgottenAfterMs = 10_000;
/** The largest report, as JSON in UTF-8. Engines refuse a larger one with `TooLargeError`. */
export const reportBytesMax = 8 * 1024;
/** The most processes of one store. At this limit the oldest report is replaced. */
export const processesMax = 1000;

/** What a process tells of itself, its policies and its consumers. */
export interface ProcessReport {
  /** Different for each start of a process. */
  readonly id: string;
  /** The name of the service, such as `checkout`. */
  readonly service: string;
  readonly host: string;
  readonly pid: number;
  /** The version of the service, or of Holdfast if the service gave none. */
  readonly version: string;
  /** Epoch ms by the clock of the process. */
  readonly startedAt: number;
  /** Epoch ms minus `Clock.now()` of the process: add it to the time of a notice to get a date. */
  readonly clockOffsetMs: number;
  /** The version of the stored controls that this process obeys; 0: it has read none yet. */
  readonly controlsVersion: number;
  /** The ids of controls that this process cannot obey, for example because it has no such policy. */
  readonly notObeyed: readonly string[];
  /** States of policies, as `policies()` of `holdfast` gives them, shortened to fit. */
  readonly policies: readonly unknown[];
  /** States of consumers, as `consumers()` of `@holdfast/events` gives them, shortened to fit. */
  readonly consumers: readonly unknown[];
  /** True: the process runs `maintenance` of `@holdfast/events` for this store. */
  readonly maintains?: boolean;
  /** How many policies, targets and consumers were left out because the report would be too large. */
  readonly leftOut: number;
}

/** A process that has reported, and when it did last, in epoch ms by the clock of the store. */
export interface PresentProcess extends ProcessReport {
  /** When the last report was stored, epoch ms by the store's clock. */
  readonly heardAt: number;
}

/** Sorts processes by host, pid and id. Engines use it, because databases sort texts in different ways. */
export function sortedProcesses(processes: readonly PresentProcess[]): PresentProcess[] {
  return processes.toSorted((a, b) => compare(a.host, b.host) || a.pid - b.pid || compare(a.id, b.id));
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

/** Throws for a report that cannot be stored. Returns the report as JSON, for engines that store text. */
export function assertReport(report: ProcessReport): string {
  for (const name of ['id', 'service', 'host', 'version'] as const) {
    if (typeof report[name] !== 'string' || report[name] === '')
      throw new OptionsError(name, report[name], 'a text that is not empty');
    assertName(name, report[name]);
  }
  for (const name of ['pid', 'startedAt', 'clockOffsetMs', 'controlsVersion', 'leftOut'] as const) {
    if (!Number.isFinite(report[name])) throw new OptionsError(name, report[name], 'a number');
  }
  for (const name of ['notObeyed', 'policies', 'consumers'] as const) {
    if (!Array.isArray(report[name])) throw new OptionsError(name, report[name], 'a list');
  }
  const json = JSON.stringify(report);
  const bytes = new TextEncoder().encode(json).length;
  if (bytes > reportBytesMax) throw new TooLargeError('the report in bytes', bytes, reportBytesMax);
  return json;
}
