/** How the state of a target is created, how many are kept, and which may be removed. */
export interface TargetsSettings<T> {
  readonly targetsMax: number;
  create(name: string): T;
  /** Whether the state of this target can be removed without losing anything important. */
  idle(target: T, now: number): boolean;
}

/**
 * The name of the shared target. New names use it while `targetsMax` is reached and no idle target can be
 * removed.
 */
export const OVERFLOW = '(overflow)';

/** The search for an idle target visits at most this many targets. So each new name has a constant cost. */
const LOOKS_MAX = 16;

/**
 * Keeps the state of each target, in bounded memory. When `targetsMax` is reached, a new name replaces an
 * idle target. If no idle target is found, the new name uses the overflow target, which all such names share.
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

  /**
   * All targets. The overflow target (new names share it when there are too many) comes last, if it exists.
   */
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
