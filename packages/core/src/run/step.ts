import type { Alarm } from '../time/clock.ts';

/** What the driver of a piece of work has to do next. */
export type Step = typeof SEND | typeof WAIT | typeof DONE | typeof STOP;
/** Call the operation with `work.current`, then ask `stepAfter`. */
export const SEND = 0;
/** Nothing until `work.wakeAt`, when `stepAt` is due, or until an attempt in guarded ends. */
export const WAIT = 1;
/** The work is done: `work.result` is its value. */
export const DONE = 2;
/** The work is over without success: throw `work.result`, or return it where `resultIsValue`; `work.stop` says why. */
export const STOP = 3;

/** Performs the steps of one piece of work, and is the alarm of its waits: with promises, with sockets, or in the simulator. */
export interface Driver extends Alarm {
  perform(step: Step): void;
}
