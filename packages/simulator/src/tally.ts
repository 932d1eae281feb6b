import type { StopReason } from 'holdfast';
import { Samples, Series } from './series.ts';

/** Counts of one group of callers: a class of clients, or a tier (a service that calls another). */
export class CallerTally {
  readonly begun = new Series();
  /** `succeeded` and `failed` record a call at the time when it ended. */
  readonly succeeded = new Series();
  readonly failed = new Series();
  /** `won` and `lost` record the same calls at the time when each call began. */
  readonly won = new Series();
  readonly lost = new Series();
  readonly attempts = new Series();
  /** Failed calls that a fallback has answered. */
  readonly fallbacks = new Series();
  /** Calls that failed before their first attempt. */
  readonly refused = new Series();
  /** The duration of each successful call, including its retries and waits. */
  readonly latency = new Samples();
  readonly stops: Partial<Record<StopReason, number>> = {};
  /** The number of clients that have made all their calls and whose last call succeeded. */
  finished = 0;
  clients = 1;
  /** The number of failed calls. Poison calls, which fail at every attempt by design, do not count. */
  lostGood = 0;
  open = 0;
  /** Calls that a client repeated after a failure, like a user who reloads a page. */
  readonly reloads = new Series();
  /** For each second, the share of breakers that are open or half-open. */
  readonly breakersOpen: number[] = [];
}

export class ServiceTally {
  readonly received = new Series();
  readonly completed = new Series();
  readonly refused = new Series();
  /** Attempts that a server finished after their caller had given up. */
  readonly zombies = new Series();
  /** Like `received`, for each instance; undefined if there is only one instance. */
  readonly byInstance: readonly Series[] | undefined;
  readonly waits = new Samples();
  workedUs = 0;
  /** The part of `workedUs` that was spent on attempts whose caller had given up. */
  wastedUs = 0;
  /** Attempts that did work which another attempt of the same call had already done. */
  duplicates = 0;
  /** The number of present calls, summed over time. Tests compare it with `stayedUs` to check Little's law. */
  presentUs = 0;
  /** The time that each call spent in the service, summed over all calls. */
  stayedUs = 0;
  queueMost = 0;
  readonly queued: number[] = [];

  constructor(instances: number) {
    this.byInstance = instances > 1 ? Array.from({ length: instances }, () => new Series()) : undefined;
  }
}
