const keysMax = 8192;
const callerLengthMax = 96;

/** A cache of keys, because creating a key costs more than the rest of a rate limit check. */
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
