import type { StopReason } from 'holdfast';
import { Samples, Series } from './series.ts';

/** Counts of the work of one caller: a class of clients, or a tier that calls another. */
export class CallerTally {
  readonly begun = new Series();
  /** By when it ended. */
  readonly succeeded = new Series();
  readonly failed = new Series();
  /** The same by when it began. */
  readonly won = new Series();
  readonly lost = new Series();
  readonly attempts = new Series();
  /** Ended without a single attempt. */
  readonly refused = new Series();
  /** Of successes, with all waiting. */
  readonly latency = new Samples();
  readonly stops: Partial<Record<StopReason, number>> = {};
  /** Clients that have made all their calls, the last with success, and how many there are. */
  finished = 0;
  clients = 1;
  /** Poison is left out of these. */
  lostGood = 0;
  open = 0;
  /** Customers that failed and called again. */
  readonly reloads = new Series();
  /** By the second: the share of breakers that admit nothing or little. */
  readonly breakersOpen: number[] = [];
}

/** Counts of one service. */
export class ServiceTally {
  readonly received = new Series();
  readonly completed = new Series();
  readonly refused = new Series();
  /** Finished after the caller had given up. */
  readonly zombies = new Series();
  /** Of `received`; absent where there is only one. */
  readonly byInstance: readonly Series[] | undefined;
  readonly waits = new Samples();
  workedUs = 0;
  /** The part of it whose caller had given up. */
  wastedUs = 0;
  /** The part of it that repeated finished work. */
  duplicates = 0;
  /** For Little's law: calls × time, counted both ways. */
  presentUs = 0;
  stayedUs = 0;
  queueMost = 0;
  /** By the second. */
  readonly queued: number[] = [];

  constructor(instances: number) {
    this.byInstance = instances > 1 ? Array.from({ length: instances }, () => new Series()) : undefined;
  }
}
