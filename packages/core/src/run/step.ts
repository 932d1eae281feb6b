import type { Alarm } from '../time/clock.ts';

/** What the driver of a piece of work must do next. */
export type Step = typeof SEND | typeof WAIT | typeof DONE | typeof STOP;
/** Call the operation with `work.current`, then call `stepAfter` with its outcome. */
export const SEND = 0;
/** Do nothing until an attempt in flight ends, or until `work.wakeAt`; then call `stepAt`. */
export const WAIT = 1;
/** The work has succeeded, and `work.result` is its value. */
export const DONE = 2;
/** The work has failed: throw `work.result`, or return it if `resultIsValue` is true. `work.stop` says why. */
export const STOP = 3;

/** Performs the steps of one piece of work: with promises, with sockets or in the simulator. */
export interface Driver extends Alarm {
  perform(step: Step): void;
}
