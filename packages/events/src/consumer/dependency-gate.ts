import { breakersOf } from 'holdfast';

/** What the breakers of one dependency have counted so far. */
export interface BreakerCounts {
  readonly failed: number;
  readonly succeeded: number;
}

/**
 * What a consumer depends on, by the names of policies. While all breakers of one are open its events stay in the store: no
 * attempt is burnt, and the parking lot does not fill.
 */
export class DependencyGate {
  readonly names: readonly string[];

  constructor(names: readonly string[]) {
    this.names = names;
  }

  /** Whether the consumer depends on anything. */
  get hasDependencies(): boolean {
    return this.names.length > 0;
  }

  /** How many more handlers may begin: Infinity, as many as there are probes to find out whether all is well again, or none. */
  room(now: number): number {
    let room = Infinity;
    for (const name of this.names) room = Math.min(room, roomOf(name, now));
    return room;
  }

  /** Some dependency has no closed breaker: what is handled now finds out whether it is well again. */
  isProbing(now: number): boolean {
    return this.room(now) < Infinity;
  }

  /** When there may be room again; Infinity while a breaker is held open. */
  reopensAt(now: number): number {
    return Math.max(now, ...this.names.map((name) => soonest(name, now)));
  }

  /** In the order of the names. */
  counts(): readonly BreakerCounts[] {
    return this.names.map((name) => {
      const breakers = breakersOf(name);
      return {
        failed: sum(breakers, ({ failed }) => failed),
        succeeded: sum(breakers, ({ succeeded }) => succeeded),
      };
    });
  }

  /** Whether no breaker of the dependency at this index is closed. */
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
