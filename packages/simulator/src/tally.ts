import type { StopReason } from 'holdfast';
import { Samples, Series } from './series.ts';

/** Counts of one group of callers: a class of clients, or a tier (a service that calls another). */
export class CallerTally {
  readonly begun = new Series();
  /** `succeeded` and `failed` record a call at the time when it ended. */
  readonly succeeded = new Series();
  readonly failed = new Series();
  /**
   * `won` and `lost` count the same calls as `succeeded` and `failed`, but at the time when each call began.
   */
  readonly won = new Series();
  readonly lost = new Series();
  readonly attempts = new Series();
  readonly fallbacks = new Series();
  /** Calls that failed before their first attempt. */
  readonly refused = new Series();
  /** The duration of each successful call, including its retries and waits. */
  readonly latency = new Samples();
  readonly stops: Partial<Record<StopReason, number>> = {};
  /** The number of clients that made all their calls, the last one with success. */
  finished = 0;
  clients = 1;
  /** The number of failed calls. Poison calls (they fail by design) do not count. */
  lostGood = 0;
  open = 0;
  /** Calls that a client repeated after a failure, like a user who reloads a page. */
  readonly reloads = new Series();
  readonly breakersOpen: number[] = [];
}

export class ServiceTally {
  readonly received = new Series();
  readonly completed = new Series();
  readonly refused = new Series();
  /** Attempts that a server finished after their caller had given up. */
  readonly zombies = new Series();
  /** Attempts received by each instance; undefined if there is only one instance. */
  readonly byInstance: readonly Series[] | undefined;
  readonly waits = new Samples();
  workedUs = 0;
  wastedUs = 0;
  /** Attempts that repeated work: another attempt of the same call had already done it. */
  duplicates = 0;
  /**
   * The number of calls in the service, summed over time. Tests compare it with `stayedUs` (Little's law).
   */
  presentUs = 0;
  stayedUs = 0;
  queueMost = 0;
  readonly queued: number[] = [];

  constructor(instances: number) {
    this.byInstance = instances > 1 ? Array.from({ length: instances }, () => new Series()) : undefined;
  }
}
