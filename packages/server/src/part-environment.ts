import type { Clock } from 'holdfast';

/** The environment of parts that need a clock, but no random numbers. */
export interface PartEnvironment {
  /** The clock for deadlines and delays. Default: the system's. */
  readonly clock?: Clock | undefined;
}
