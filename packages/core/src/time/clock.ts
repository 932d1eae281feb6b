/** The only source of time in this package. Tests and the simulator provide their own clock. */
export interface Clock {
  /** Monotonic milliseconds with a fraction, from an arbitrary origin. It never goes back. */
  now(): number;
  /** Wall-clock milliseconds since 1970. Use it only for dates in headers and in stored records. */
  epochMs(): number;
  /**
   * Calls `alarm.ring` once, at the time `at` (on the scale of `now`) or later. If the alarm is already set,
   * its time is replaced.
   */
  set(alarm: Alarm, at: number): void;
  /** Cancels `alarm`. Does nothing if it is not set. */
  clear(alarm: Alarm): void;
}

/**
 * An object whose `ring` method a clock calls at a given time. It stores its own index in the clock's heap,
 * so that setting and clearing it allocates no memory.
 */
export abstract class Alarm {
  /** When the alarm rings, on the scale of `Clock.now`. The clock sets this field. */
  declare at: number;
  /** The index of the alarm in the clock's heap; −1 while it is not set. The clock sets this field. */
  declare index: number;
  /** Alarms with the same time ring in the order of these numbers. The clock sets this field. */
  declare order: number;

  constructor() {
    this.at = 0;
    this.index = -1;
    this.order = 0;
  }

  abstract ring(now: number): void;
}

/** The only source of random numbers in this package. It returns a number in [0, 1). */
export type Random = () => number;
