import { breakersOf } from 'holdfast';

/**
 * What a consumer depends on, by the names of policies. While all breakers of one are open its events stay in the store: no
 * attempt is burnt, and the parking lot does not fill.
 */
export class Brake {
  readonly names: readonly string[];

  constructor(names: readonly string[]) {
    this.names = names;
  }

  /** How many more handlers may begin: Infinity, as many as there are probes to find out whether all is well again, or none. */
  room(now: number): number {
    let room = Infinity;
    for (const name of this.names) room = Math.min(room, roomOf(name, now));
    return room;
  }

  /** When there may be room again; Infinity while a breaker is held open. */
  reopensAt(now: number): number {
    return Math.max(now, ...this.names.map((name) => soonest(name, now)));
  }
}

function roomOf(name: string, now: number): number {
  const breakers = breakersOf(name);
  if (breakers.length === 0) return Infinity;
  return breakers.reduce((sum, breaker) => sum + breaker.room(now), 0);
}

function soonest(name: string, now: number): number {
  const times = breakersOf(name).map((breaker) => breaker.reopensAt(now));
  return times.length === 0 ? now : Math.min(...times);
}
