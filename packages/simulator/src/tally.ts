import type { StopReason } from 'holdfast';
import { Samples, Series } from './series.ts';

/** Counts of one group of callers: a class of clients, or a service (tier) that calls another. */
export class CallerTally {
  readonly begun = new Series();
  /** `succeeded` and `failed` count each call at the time at which the call ended. */
  readonly succeeded = new Series();
  readonly failed = new Series();
  /** `won` and `lost` count the same calls, but at the time at which each call began. */
  readonly won = new Series();
  readonly lost = new Series();
  readonly attempts = new Series();
  /** Calls that failed without a single attempt. */
  readonly refused = new Series();
  /** The duration of successful calls, including retries and waits. */
  readonly latency = new Samples();
  readonly stops: Partial<Record<StopReason, number>> = {};
  /**
   * The number of clients that have made all their calls, the last one with success. `clients` is the number of all
   * clients.
   */
  finished = 0;
  clients = 1;
  /** The number of failed calls, not counting poison calls (those that fail at every attempt). */
  lostGood = 0;
  open = 0;
  /** The number of failed calls that the client has repeated, like a user who reloads a page. */
  readonly reloads = new Series();
  /** For each second the share of breakers that are open or half-open. */
  readonly breakersOpen: number[] = [];
}

export class ServiceTally {
  readonly received = new Series();
  readonly completed = new Series();
  readonly refused = new Series();
  /** Attempts that were finished after their caller had given up. */
  readonly zombies = new Series();
  /** The same as `received` for each instance; undefined if there is only one instance. */
  readonly byInstance: readonly Series[] | undefined;
  readonly waits = new Samples();
  workedUs = 0;
  /** The part of `workedUs` for attempts whose caller had given up. */
  wastedUs = 0;
  /** The number of attempts that repeated work which was already done. */
  duplicates = 0;
  /**
   * For a check of Little's law: the number of present calls summed over time, and the time of each call in the service
   * summed over calls.
   */
  presentUs = 0;
  stayedUs = 0;
  queueMost = 0;
  /** The queue length at each second. */
  readonly queued: number[] = [];

  constructor(instances: number) {
    this.byInstance = instances > 1 ? Array.from({ length: instances }, () => new Series()) : undefined;
  }
}
