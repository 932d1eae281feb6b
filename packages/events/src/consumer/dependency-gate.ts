import { breakersOf, policyOf } from 'holdfast';

/** The numbers of failed and successful calls of one dependency, summed over all its circuit breakers. */
export interface BreakerCounts {
  readonly failed: number;
  readonly succeeded: number;
}

/**
 * Limits how many handlers run while a dependency (another system that handlers call) is down. While all its
 * circuit breakers are open, no event is leased, so no event loses an attempt.
 */
export class DependencyGate {
  readonly names: readonly string[];

  constructor(names: readonly string[]) {
    this.names = names;
  }

  get hasDependencies(): boolean {
    return this.names.length > 0;
  }

  /**
   * Returns how many handlers may run at the same time. Infinity: each dependency has a closed breaker.
   * Otherwise, the result is the number of test calls that the breakers admit.
   */
  room(now: number): number {
    let room = Infinity;
    for (const name of this.names) room = Math.min(room, roomOf(name, now));
    return room;
  }

  /** Returns the dependencies whose breakers admit no call now. */
  waitsFor(now: number): readonly string[] {
    return this.names.filter((name) => roomOf(name, now) === 0);
  }

  /**
   * Returns the names for which this process has no policy: they are misspelt, or the policy is not created
   * yet.
   */
  unknown(): readonly string[] {
    return this.names.filter((name) => !policyOf(name));
  }

  /**
   * True: a dependency has no closed breaker. In this case, at most a few events are handled, to test whether
   * the dependency works again.
   */
  isProbing(now: number): boolean {
    return this.room(now) < Infinity;
  }

  /** Returns the time when `room` may be above 0 again. Infinity: an operator has forced a breaker open. */
  reopensAt(now: number): number {
    return Math.max(now, ...this.names.map((name) => soonest(name, now)));
  }

  /** Returns the call counters of each dependency, in the order of `names`. */
  counts(): readonly BreakerCounts[] {
    return this.names.map((name) => {
      const breakers = breakersOf(name);
      return {
        failed: sum(breakers, ({ failed }) => failed),
        succeeded: sum(breakers, ({ succeeded }) => succeeded),
      };
    });
  }

  /** True: the dependency with this index in `names` has no closed breaker. */
  isDown(index: number, now: number): boolean {
    return roomOf(this.names[index]!, now) < Infinity;
  }
}

function roomOf(name: string, now: number): number {
  const breakers = breakersOf(name);
  return breakers.length === 0 ? Infinity : sum(breakers, (breaker) => breaker.room(now));
}

function soonest(name: string, now: number): number {
  const times = breakersOf(name).map((breaker) => breaker.reopensAt(now));
  return times.length === 0 ? now : Math.min(...times);
}

function sum<T>(all: readonly T[], of: (each: T) => number): number {
  return all.reduce((total, each) => total + of(each), 0);
}
