import type { Clock } from 'holdfast';

/** The clock of parts that need no random numbers. */
export interface PartEnvironment {
  /** The clock of deadlines and waits. Default: the system's. */
  readonly clock?: Clock | undefined;
}
