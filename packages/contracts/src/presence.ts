import { OptionsError } from 'holdfast';
import { TooLargeError } from './contract-errors.ts';
import { assertName } from './for-engines.ts';

/**
 * The running processes. Every 2 s, a process reports what its policies and consumers do. A console shows
 * these reports.
 */
export interface Presence {
  /**
   * Stores the report of a process and replaces its previous report. The store removes a report after 10 s.
   */
  report(process: ProcessReport): Promise<void>;
  /** Removes the report of a process that shuts down. */
  leave(id: string): Promise<void>;
  /** Lists the processes that reported in the last 10 s, sorted by host, pid and id. */
  processes(): Promise<readonly PresentProcess[]>;
}

/** A report is ignored when it is older than this, by the store's clock. */
export const forgottenAfterMs = 10_000;
/** The most bytes of a report, as JSON in UTF-8. Engines refuse a larger report with `TooLargeError`. */
export const reportBytesMax = 8 * 1024;
/** The most reports in one store. At this limit, a new report replaces the oldest one. */
export const processesMax = 1000;

/** The report of a process about itself, its policies and its consumers. */
export interface ProcessReport {
  /** The id of the process. It is different for each start of a process. */
  readonly id: string;
  /** The name of the service, such as `checkout`. */
  readonly service: string;
  readonly host: string;
  readonly pid: number;
  /** The version of the service, or of Holdfast if the service gave none. */
  readonly version: string;
  /** Epoch ms by the clock of the process. */
  readonly startedAt: number;
  /** The epoch time minus `Clock.now()` of this process. Add it to a time in the report to get epoch ms. */
  readonly clockOffsetMs: number;
  /** The version of the stored controls that this process obeys; 0: it has read none yet. */
  readonly controlsVersion: number;
  /** The ids of controls that this process cannot apply, for example because it lacks the policy. */
  readonly notObeyed: readonly string[];
  /** The states of the policies, as `policies()` of `holdfast` returns them. Long lists are cut. */
  readonly policies: readonly unknown[];
  /** The states of the consumers, as `consumers()` of `@holdfast/events` returns them. Long lists are cut. */
  readonly consumers: readonly unknown[];
  /** True: the process runs `maintenance` of `@holdfast/events` for this store. */
  readonly maintains?: boolean;
  /** How many policies, targets and consumers were left out because the report would be too large. */
  readonly leftOut: number;
}

/** The stored report of a process. */
export interface PresentProcess extends ProcessReport {
  /** When the last report was stored, epoch ms by the store's clock. */
  readonly heardAt: number;
}

/** Sorts processes by host, pid and id, because databases sort text in different ways. */
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
