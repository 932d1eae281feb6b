/**
 * Time, as the rest of the system sees it. Production, tests and the simulator each bring one;
 * nothing else may ask what time it is.
 */
export interface Clock {
  /** Monotonic milliseconds with a fraction. The origin means nothing; it never goes back. */
  now(): number;
  /** Wall-clock milliseconds since 1970, for dates in headers and stored records only. */
  epochMs(): number;
  /** Rings `alarm` once, at `at` or later, on the scale of `now`. An alarm that is set already is moved. */
  set(alarm: Alarm, at: number): void;
  /** Forgets `alarm`; harmless when it is not set. */
  clear(alarm: Alarm): void;
}

/**
 * Something that wants waking. It knows its own place among the others, so that setting and clearing it allocates
 * nothing: a hundred thousand waiters cost a hundred thousand objects and one timer.
 */
export abstract class Alarm {
  /** When it rings, on the scale of `Clock.now`. Written by the clock. */
  declare at: number;
  /** Its place in the clock's heap; −1 while it is not set. Written by the clock. */
  declare index: number;
  /** When it was set, among all: alarms of the same time ring in this order. Written by the clock. */
  declare order: number;

  constructor() {
    this.at = 0;
    this.index = -1;
    this.order = 0;
  }

  abstract ring(now: number): void;
}

/** Chance, as the rest of the system sees it: a number in [0, 1). */
export type Random = () => number;
