export interface TargetsSettings<T> {
  readonly targetsMax: number;
  create(name: string): T;
  /** Whether nothing is lost by forgetting it: nothing in flight, breaker closed, not used for a while. */
  idle(target: T, now: number): boolean;
}

/** The name under which strangers are listed together. */
export const OVERFLOW = '(overflow)';

/** How many targets are looked at to find an idle one, so that a flood of strangers costs each the same. */
const LOOKS_MAX = 16;

/**
 * State by target, in bounded memory whatever names arrive. When it is full an idle target makes way; while none is
 * found, strangers share one target, and those that are known keep their own.
 */
export class Targets<T extends object> implements Iterable<[name: string, target: T]> {
  readonly #settings: TargetsSettings<T>;
  readonly #all = new Map<string, T>();
  #overflow: T | undefined = undefined;
  /** Goes on where the last search ended. */
  #search: MapIterator<[string, T]> = this.#all.entries();

  constructor(settings: TargetsSettings<T>) {
    this.#settings = settings;
  }

  get size(): number {
    return this.#all.size;
  }

  get(name: string, now: number): T {
    return this.#all.get(name) ?? this.#stranger(name, now);
  }

  /** All targets, and the one that strangers share if there ever was need of it. */
  *[Symbol.iterator](): Generator<[name: string, target: T]> {
    yield* this.#all;
    if (this.#overflow) yield [OVERFLOW, this.#overflow];
  }

  #stranger(name: string, now: number): T {
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
