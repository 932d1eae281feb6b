import { type Clock, systemClock, systemRandom } from 'holdfast';
import { systemMonotonicClock } from './system-monotonic-clock.ts';

/** Milliseconds that cannot be set, the same for all processes of one boot. */
export interface MonotonicClock {
  /** The boot that `now` counts from. Clocks with the same id must agree on `now`. */
  readonly bootId: string;
  /** Milliseconds with a fraction; it never goes back. */
  now(): number;
}

const clocksGiven = new WeakMap<Clock, MonotonicClock>();

/**
 * The machine's own for the system clock. Another clock means nothing to other processes, so each is a boot of its own: engines that
 * are given the same clock agree.
 */
export function monotonicClockOf(clock: Clock): MonotonicClock {
  if (clock === systemClock) return systemMonotonicClock();
  const known = clocksGiven.get(clock) ?? { bootId: `given ${systemRandom()}`, now: () => clock.now() };
  clocksGiven.set(clock, known);
  return known;
}
