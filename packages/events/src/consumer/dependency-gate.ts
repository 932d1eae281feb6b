import { breakersOf, policyOf } from 'holdfast';

/** The calls that all circuit breakers of one dependency have counted. */
export interface BreakerCounts {
  readonly failed: number;
  readonly succeeded: number;
}

/**
 * Limits how many handlers run while another system is down. While all circuit breakers of a system are open, no event
 * is leased, so no event loses an attempt.
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
   * Returns how many handlers may run. Infinity: each system has a closed breaker. Otherwise: how many test calls the
   * breakers admit.
   */
  room(now: number): number {
    let room = Infinity;
    for (const name of this.names) room = Math.min(room, roomOf(name, now));
    return room;
  }

  /** The names of the systems that admit no call now. */
  waitsFor(now: number): readonly string[] {
    return this.names.filter((name) => roomOf(name, now) === 0);
  }

  /** The names that no policy of this process has. They are misspelt, or the policy is not made yet. */
  unknown(): readonly string[] {
    return this.names.filter((name) => !policyOf(name));
  }

  /** True: a system has no closed breaker, so handled events test whether the system works again. */
  isProbing(now: number): boolean {
    return this.room(now) < Infinity;
  }

  /** Returns when `room` may be above 0 again. Infinity: an operator has opened a breaker. */
  reopensAt(now: number): number {
    return Math.max(now, ...this.names.map((name) => soonest(name, now)));
  }

  /** Returns the counts of each dependency, in the order of `names`. */
  counts(): readonly BreakerCounts[] {
    return this.names.map((name) => {
      const breakers = breakersOf(name);
      return {
        failed: sum(breakers, ({ failed }) => failed),
        succeeded: sum(breakers, ({ succeeded }) => succeeded),
      };
    });
  }

  /** True: this dependency has no closed breaker. */
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
