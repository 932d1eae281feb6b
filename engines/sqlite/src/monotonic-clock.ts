import { type Clock, systemClock, systemRandom } from 'holdfast';
import { systemMonotonicClock } from './system-monotonic-clock.ts';

/** Milliseconds that nobody can set, counted alike by all processes of one boot. */
export interface MonotonicClock {
  /** Names the boot that `now` counts in. Clocks with the same id must agree about `now`. */
  readonly bootId: string;
  /** Milliseconds with a fraction; it never goes back. */
  now(): number;
}

const clocksGiven = new WeakMap<Clock, MonotonicClock>();

/**
 * The machine's own for the system clock. What another clock counts means nothing to other processes, so each one is a boot of its
 * own: handles that are given the same clock agree.
 */
export function monotonicClockOf(clock: Clock): MonotonicClock {
  if (clock === systemClock) return systemMonotonicClock();
  const known = clocksGiven.get(clock) ?? { bootId: `given ${systemRandom()}`, now: () => clock.now() };
  clocksGiven.set(clock, known);
  return known;
}
