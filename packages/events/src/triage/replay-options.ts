import type { ReplayRequest } from '@holdfast/contracts';

/** How a replay publishes parked events again: `defaultReplay` with changes. */
export interface ReplayOptions extends Partial<Omit<ReplayRequest, 'filter' | 'kind'>> {
  /** The topic to which events are published. Default: the topic of each event. */
  readonly to?: string;
  /** How many events are released per second. Default: `50`. */
  readonly rate?: number;
  /**
   * How many events are released first, as a test. The other events are released when all test events have succeeded.
   * 0: no test. Default: `5`.
   */
  readonly canary?: number;
  /** The replay waits at least this long after the canary before it releases other events, in ms. Default: `5000`. */
  readonly canaryMs?: number;
  /** The most released events that have neither succeeded nor failed yet. Default: `500`. */
  readonly outstandingMax?: number;
  /** The replay stops when more than this share of the latest events failed again, from 0 to 1. Default: `0.5`. */
  readonly stopAbove?: number;
  /** How many events a dry run counted, for the progress bar. Default: none. */
  readonly expected?: number;
}
