import { breakersOf } from 'holdfast';

/** How many calls the circuit breakers of one dependency have counted. */
export interface BreakerCounts {
  readonly failed: number;
  readonly succeeded: number;
}

/**
 * Limits how many handlers run while a dependency of the consumer is down. A dependency is another system, given by the
 * name of the policy that calls it. While all circuit breakers of a dependency are open, events stay in the store: they
 * lose no attempts and are not parked.
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
   * Returns how many handlers may run: Infinity if each dependency has a closed breaker, otherwise the number of test
   * calls (probes) that the breakers admit.
   */
  room(now: number): number {
    let room = Infinity;
    for (const name of this.names) room = Math.min(room, roomOf(name, now));
    return room;
  }

  /**
   * True if a dependency has no closed breaker. Events that are handled now then test whether the dependency works
   * again.
   */
  isProbing(now: number): boolean {
    return this.room(now) < Infinity;
  }

  /** Returns the time at which `room` may be above 0 again; Infinity while an operator holds a breaker open. */
  reopensAt(now: number): number {
    return Math.max(now, ...this.names.map((name) => soonest(name, now)));
  }

  /** Returns the counted calls of each dependency, in the order of `names`. */
  counts(): readonly BreakerCounts[] {
    return this.names.map((name) => {
      const breakers = breakersOf(name);
      return {
        failed: sum(breakers, ({ failed }) => failed),
        succeeded: sum(breakers, ({ succeeded }) => succeeded),
      };
    });
  }

  /** True if the dependency at this index of `names` has no closed breaker. */
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
