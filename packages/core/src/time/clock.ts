/** The only source of time. Tests and the simulator provide their own clock. */
export interface Clock {
  /** Monotonic milliseconds with a fraction, from an arbitrary origin. It never goes back. */
  now(): number;
  /** Wall-clock milliseconds since 1970, for dates in headers and stored records only. */
  epochMs(): number;
  /** Calls `alarm.ring` once, at `at` (on the scale of `now`) or later. Replaces a time that was set before. */
  set(alarm: Alarm, at: number): void;
  /** Cancels `alarm`. Does nothing if it is not set. */
  clear(alarm: Alarm): void;
}

/**
 * An object that a clock calls at a given time. It stores its own place in the clock's heap, so that setting and
 * clearing it allocates nothing.
 */
export abstract class Alarm {
  /** When it rings, on the scale of `Clock.now`. Written by the clock. */
  declare at: number;
  /** Its place in the clock's heap; −1 while it is not set. Written by the clock. */
  declare index: number;
  /** Alarms of the same time ring in this order. Written by the clock. */
  declare order: number;

  constructor() {
    this.at = 0;
    this.index = -1;
    this.order = 0;
  }

  abstract ring(now: number): void;
}

/** The only source of randomness: it returns a number in [0, 1). */
export type Random = () => number;
