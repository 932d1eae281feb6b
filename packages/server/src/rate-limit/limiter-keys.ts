/** The most keys in the cache. Callers with names longer than `callerLengthMax` are not cached. */
const keysMax = 8192;
const callerLengthMax = 96;

/**
 * A cache of the keys under which a caller's requests to a route are counted. Making a key (joining caller and route,
 * hashing if it is long) costs more than the rest of a rate limit check, and the same few pairs come again and again.
 */
export class LimiterKeys {
  readonly #make: (caller: string, route: string | undefined) => string;
  readonly #byRoute: Map<string | undefined, Map<string, string>> = new Map();
  #size = 0;

  constructor(make: (caller: string, route: string | undefined) => string) {
    this.#make = make;
  }

  of(caller: string, route: string | undefined): string {
    return this.#byRoute.get(route)?.get(caller) ?? this.#add(caller, route);
  }

  #add(caller: string, route: string | undefined): string {
    if (caller.length > callerLengthMax) return this.#make(caller, route);
    if (this.#size >= keysMax) {
      this.#byRoute.clear();
      this.#size = 0;
    }
    this.#size++;
    const key = this.#make(caller, route);
    const keys = this.#byRoute.get(route) ?? new Map<string, string>();
    keys.set(caller, key);
    this.#byRoute.set(route, keys);
    return key;
  }
}
