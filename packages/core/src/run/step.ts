import type { Alarm } from '../time/clock.ts';

/** What the driver (the code that performs the steps of a run) must do next. */
export type Step = typeof SEND | typeof WAIT | typeof DONE | typeof STOP;
/**
 * The driver (the code that performs the steps) must call the operation with `work.current`, and later call
 * `stepAfter` with the outcome.
 */
export const SEND = 0;
/**
 * The driver (the code that performs the steps) must wait until an attempt in flight ends, or until
 * `work.wakeAt`. At `work.wakeAt` it must call `stepAt`.
 */
export const WAIT = 1;
/** The run has succeeded, and `work.result` is its value. */
export const DONE = 2;
/**
 * The run has failed, and `work.stop` says why. The driver (the code that performs the steps) must throw
 * `work.result`, or return it if `work.resultIsValue` is true.
 */
export const STOP = 3;

/** Performs the steps of one run. There are drivers for promises, for sockets and for the simulator. */
export interface Driver extends Alarm {
  perform(step: Step): void;
}
