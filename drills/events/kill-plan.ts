import { carrierPoints, publisherPoints, redisPoints, workerPoints } from './doom.ts';
import { isBroker, type Place } from './place.ts';

export type Role = 'worker' | 'publisher';

/** Killed by the drill, at any moment. */
export const CHANCE = 'by chance';
/** Not killed at all. */
export const NEVER = 'never';

type DeathPlace = readonly [Role, string];

const places: readonly DeathPlace[] = [
  ...[...publisherPoints, CHANCE].map((point) => ['publisher', point] as const),
  ...[...workerPoints, CHANCE].map((point) => ['worker', point] as const),
];

export const killPoints: readonly string[] = [...new Set(places.map(([, point]) => point))];
/** The number of deaths with one at each point, and one by chance for each role. */
export const killPlaces: number = places.length;

function placesOn(engine: Place['engine']): readonly DeathPlace[] {
  if (!isBroker(engine)) return places;
  const [first, second, third, ...others] = engine === 'redis' ? redisPoints : carrierPoints;
  return [
    ...[first!, second!, third!, CHANCE].map((point) => ['worker', point] as const),
    ...['publish.after', CHANCE, 'publish.commit'].map((point) => ['publisher', point] as const),
    ...others.map((point) => ['worker', point] as const),
  ];
}

/** Which process dies where: the same number at each point. */
export class KillPlan {
  readonly hits: Record<string, number>;
  /** Deaths that are still to be aimed at. */
  readonly #left: Record<Role, Map<string, number>> = { publisher: new Map(), worker: new Map() };
  #undied: number;

  constructor(engine: Place['engine'], times: number) {
    this.#undied = times;
    const all = placesOn(engine);
    this.hits = Object.fromEntries(all.map(([, point]) => [point, 0]));
    for (const [index, [role, point]] of all.entries()) {
      this.#left[role].set(point, Math.floor((times + all.length - 1 - index) / all.length));
    }
  }

  get goesOn(): boolean {
    return this.#undied > 0;
  }

  /** The point with the fewest deaths; `undefined`: no process of this role has to die any more. */
  next(role: Role): string | undefined {
    const [point, left] = [...this.#left[role]].toSorted(([, a], [, b]) => b - a)[0]!;
    if (left === 0) return undefined;
    this.#left[role].set(point, left - 1);
    return point;
  }

  /** A process that did not reach its point in time died by chance: the point is planned again. */
  died(role: Role, aimed: string, at: string): void {
    this.hits[at]! += 1;
    if (aimed === at) {
      this.#undied -= 1;
      return;
    }
    const left = this.#left[role];
    left.set(aimed, left.get(aimed)! + 1);
    // It stands for one that was to die so; without one, it is one more than was asked for.
    const planned = left.get(at)!;
    if (planned === 0) return;
    left.set(at, planned - 1);
    this.#undied -= 1;
  }
}
