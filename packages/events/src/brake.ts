import { breakersOf } from 'holdfast';

/** What the breakers of each dependency have counted: failures and successes, in turn, in the order of the names. */
export type BreakerCounts = readonly number[];

/**
 * What a consumer depends on, by the names of policies. While all breakers of one are open its events stay in the store: no
 * attempt is burnt, and the parking lot does not fill.
 */
export class Brake {
  readonly names: readonly string[];

  constructor(names: readonly string[]) {
    this.names = names;
  }

  /** The consumer depends on something. */
  get isFitted(): boolean {
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

  counts(): BreakerCounts {
    return this.names.flatMap((name) => {
      const breakers = breakersOf(name);
      return [sum(breakers, ({ failed }) => failed), sum(breakers, ({ succeeded }) => succeeded)];
    });
  }

  /** The dependencies, by their places, on which a call has failed since `before`. */
  failedSince(before: BreakerCounts, counts: BreakerCounts): readonly number[] {
    return [...this.names.keys()].filter((place) => counts[2 * place]! > before[2 * place]!);
  }

  /** Whether no breaker of the dependency at this place is closed. */
  isOnFor(place: number, now: number): boolean {
    return roomOf(this.names[place]!, now) < Infinity;
  }
}

/** Whether a call has succeeded on one of the dependencies at these places. */
export function hasSucceeded(
  places: readonly number[],
  before: BreakerCounts,
  after: BreakerCounts,
): boolean {
  return places.some((place) => after[2 * place + 1]! > before[2 * place + 1]!);
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
