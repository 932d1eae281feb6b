import type { MatchConfig } from '../file/gateway-config.ts';

export interface Matched {
  readonly config: { readonly match: MatchConfig };
}

/** No route has the path. */
export const NOT_FOUND = 404;
/** A route has the path, but not for this method. */
export const NOT_ALLOWED = 405;

/**
 * Finds the most specific route of a request, whatever the order in the file. A prefix ends at a slash:
 * `/orders` matches `/orders/1`, but not `/ordersX`.
 */
export class RouteTable<R extends Matched> {
  readonly #hosts = new Map<string, PathTable<R>>();
  /** Suffixes of host names, such as `.example.com`. The longest suffix is first. */
  readonly #suffixes: [suffix: string, table: PathTable<R>][] = [];
  readonly #every = new PathTable<R>();
  /** False: no route names a host, so the host of a request is not read. */
  readonly needsHost: boolean;

  constructor(routes: readonly R[]) {
    for (const route of routes) {
      const { hosts } = route.config.match;
      if (hosts.length === 0) this.#every.add(route);
      for (const host of hosts) this.#tableFor(host).add(route);
    }
    this.#suffixes.sort(([a], [b]) => b.length - a.length);
    this.needsHost = this.#hosts.size > 0 || this.#suffixes.length > 0;
  }

  /** `host` must be in lower case and without a port. */
  find(host: string, path: string, method: string): R | typeof NOT_FOUND | typeof NOT_ALLOWED {
    let missing: typeof NOT_FOUND | typeof NOT_ALLOWED = NOT_FOUND;
    if (this.needsHost) {
      const exact = this.#hosts.get(host)?.find(path, method);
      if (typeof exact === 'object') return exact;
      if (exact === NOT_ALLOWED) missing = NOT_ALLOWED;
      for (const [suffix, table] of this.#suffixes) {
        if (host.length <= suffix.length || !host.endsWith(suffix)) continue;
        const found = table.find(path, method);
        if (typeof found === 'object') return found;
        if (found === NOT_ALLOWED) missing = NOT_ALLOWED;
      }
    }
    const found = this.#every.find(path, method);
    return found === NOT_FOUND ? missing : found;
  }

  #tableFor(host: string): PathTable<R> {
    if (host.startsWith('*.')) {
      const suffix = host.slice(1);
      let entry = this.#suffixes.find(([each]) => each === suffix);
      if (!entry) {
        entry = [suffix, new PathTable<R>()];
        this.#suffixes.push(entry);
      }
      return entry[1];
    }
    const known = this.#hosts.get(host);
    if (known) return known;
    const made = new PathTable<R>();
    this.#hosts.set(host, made);
    return made;
  }
}

class PathTable<R extends Matched> {
  readonly #exact = new Map<string, MethodTable<R>>();
  readonly #prefixes = new Map<string, MethodTable<R>>();

  add(route: R): void {
    const { path, isExact, methods } = route.config.match;
    const table = isExact ? this.#exact : this.#prefixes;
    // `/orders/` and `/orders` mean the same prefix.
    const key = isExact || path === '/' ? path : path.replace(/\/$/, '');
    let byMethod = table.get(key);
    if (!byMethod) {
      byMethod = { methods: new Map(), every: undefined };
      table.set(key, byMethod);
    }
    if (methods.length === 0) byMethod.every ??= route;
    for (const method of methods) if (!byMethod.methods.has(method)) byMethod.methods.set(method, route);
  }

  find(path: string, method: string): R | typeof NOT_FOUND | typeof NOT_ALLOWED {
    let missing: typeof NOT_FOUND | typeof NOT_ALLOWED = NOT_FOUND;
    if (this.#exact.size > 0) {
      const exact = this.#exact.get(path);
      if (exact) {
        const route = exact.methods.get(method) ?? exact.every;
        if (route) return route;
        missing = NOT_ALLOWED;
      }
    }
    for (let end = path.length; ; end = path.lastIndexOf('/', end - 1)) {
      const prefix = end <= 0 ? '/' : end === path.length ? path : path.slice(0, end);
      const byMethod = this.#prefixes.get(prefix);
      if (byMethod) {
        const route = byMethod.methods.get(method) ?? byMethod.every;
        if (route) return route;
        missing = NOT_ALLOWED;
      }
      if (end <= 0) return missing;
    }
  }
}

interface MethodTable<R> {
  readonly methods: Map<string, R>;
  every: R | undefined;
}
