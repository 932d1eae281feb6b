/** So many are remembered, of callers that are not longer than this. */
const namesMax = 8192;
const callerMax = 96;

/**
 * The name under which a caller's use of a route is counted. To join the two, and to hash what comes of it, costs more than
 * all the rest of a limiter, and the same few pairs come again and again: those of late are remembered.
 */
export class LimiterKeys {
  readonly #make: (caller: string, route: string | undefined) => string;
  readonly #byRoute: Map<string | undefined, Map<string, string>> = new Map();
  #size = 0;

  constructor(make: (caller: string, route: string | undefined) => string) {
    this.#make = make;
  }

  of(caller: string, route: string | undefined): string {
    return this.#byRoute.get(route)?.get(caller) ?? this.#remember(caller, route);
  }

  #remember(caller: string, route: string | undefined): string {
    if (caller.length > callerMax) return this.#make(caller, route);
    if (this.#size >= namesMax) {
      this.#byRoute.clear();
      this.#size = 0;
    }
    this.#size++;
    const name = this.#make(caller, route);
    const names = this.#byRoute.get(route) ?? new Map<string, string>();
    names.set(caller, name);
    this.#byRoute.set(route, names);
    return name;
  }
}
