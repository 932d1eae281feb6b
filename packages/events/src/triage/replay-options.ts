import type { ReplayRequest } from '@holdfast/contracts';

/**
 * How a replay publishes parked events again. Fields that are not given have the values of `defaultReplay`.
 */
export interface ReplayOptions extends Partial<Omit<ReplayRequest, 'filter' | 'kind'>> {
  /** The topic to which events are published. Default: the topic of each event. */
  readonly to?: string;
  /** How many events are published per second. Default: `50`. */
  readonly rate?: number;
  /**
   * How many events are published first, as a test. The other events are published when all test events have
   * succeeded. 0: no test. Default: `5`.
   */
  readonly canary?: number;
  /** The least time (ms) between the test events of `canary` and the other events. Default: `5000`. */
  readonly canaryMs?: number;
  /** The most events in flight: published, but neither succeeded nor failed yet. Default: `500`. */
  readonly outstandingMax?: number;
  /**
   * The replay stops when more than this share of its latest finished events failed again, from 0 to 1.
   * Default: `0.5`.
   */
  readonly stopAbove?: number;
  /** The number of events that `dryRun` has counted, for the progress bar. Default: none. */
  readonly expected?: number;
}
