/** How targets are made, and how many are kept. When there are more, one that is idle goes. */
export interface TargetsSettings<T> {
  readonly targetsMax: number;
  create(name: string): T;
  /** Whether the state of this target can be removed without loss. */
  idle(target: T, now: number): boolean;
}

/** The name of the target that new names share while `targetsMax` is reached. */
export const OVERFLOW = '(overflow)';

/** How many targets one search for an idle target visits, so that each new name has a constant cost. */
const LOOKS_MAX = 16;

/**
 * The state of each target, in bounded memory. When `targetsMax` is reached, a new name replaces an idle target. If no
 * idle target is found, all new names share one overflow target.
 */
export class Targets<T extends object> implements Iterable<[name: string, target: T]> {
  readonly #settings: TargetsSettings<T>;
  readonly #all = new Map<string, T>();
  #overflow: T | undefined = undefined;
  #search: MapIterator<[string, T]> = this.#all.entries();

  constructor(settings: TargetsSettings<T>) {
    this.#settings = settings;
  }

  get size(): number {
    return this.#all.size;
  }

  get(name: string, now: number): T {
    return this.#all.get(name) ?? this.#add(name, now);
  }

  /** All targets. The overflow target comes last, if it exists. */
  *[Symbol.iterator](): Generator<[name: string, target: T]> {
    yield* this.#all;
    if (this.#overflow) yield [OVERFLOW, this.#overflow];
  }

  #add(name: string, now: number): T {
    if (this.#all.size >= this.#settings.targetsMax && !this.#evict(now)) {
      this.#overflow ??= this.#settings.create(OVERFLOW);
      return this.#overflow;
    }
    const target = this.#settings.create(name);
    this.#all.set(name, target);
    return target;
  }

  #evict(now: number): boolean {
    for (let looks = 0; looks < LOOKS_MAX; looks++) {
      const { done, value } = this.#search.next();
      if (done) this.#search = this.#all.entries();
      else if (this.#settings.idle(value[1], now)) return this.#all.delete(value[0]);
    }
    return false;
  }
}
