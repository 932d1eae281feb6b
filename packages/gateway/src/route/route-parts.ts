import type { Ledger, RateLimits } from '@holdfast/contracts';
import {
  bulkhead,
  degrade,
  type Exchange,
  idempotency,
  type Part,
  type Peers,
  type PlainResponse,
  rateLimit,
  shed,
} from '@holdfast/server';
import { fnv1a } from 'holdfast';
import type { FallbackConfig, Protections, RouteConfig } from '../file/gateway-config.ts';
import { headOf } from '../proxy/request-head.ts';

/**
 * The stores of the protections: idempotency keys in `ledger`, and shared rate limits in `rateLimits`.
 * Without `rateLimits`, limits are counted in this process.
 */
export interface Stores {
  readonly ledger: Ledger<never>;
  readonly rateLimits: RateLimits | undefined;
}

/**
 * Creates the protections (such as rate limits) of routes and upstreams. After a reload, a protection with
 * unchanged settings keeps its state.
 */
export class RouteParts {
  readonly #stores: Stores;
  readonly #trusted: Peers | undefined;
  readonly #workers: number;
  readonly #made: Map<string, Part>;
  readonly #used = new Map<string, Part>();

  constructor(stores: Stores, trusted: Peers | undefined, workers: number, before?: RouteParts) {
    this.#stores = stores;
    this.#trusted = trusted;
    this.#workers = workers;
    this.#made = before ? new Map(before.#used) : new Map();
  }

  /** Returns the protections of a route, and those that all routes of its upstream share. */
  partsFor(route: RouteConfig, upstream: Protections): Part[] {
    const { protections, fallback } = route;
    const own = `route ${route.name}`;
    const shared = `upstream ${route.upstream}`;
    return [
      ...this.#limits(own, protections),
      ...this.#limits(shared, upstream),
      ...this.#idempotency(own, protections),
      ...(fallback && (fallback.staleMs !== undefined || fallback.static)
        ? [this.#part(`${own} fallback`, fallback, () => degrade(degradeOptions(fallback)))]
        : []),
    ];
  }

  /** The protections (such as rate limits) in use. Each key names the owner, the kind and the settings. */
  get parts(): ReadonlyMap<string, Part> {
    return this.#used;
  }

  #limits(owner: string, { rateLimiting, bulkhead: permits, shedding }: Protections): Part[] {
    const parts: Part[] = [];
    if (rateLimiting) {
      const { requestsPerSecond, burstSize, key, reportOnly } = rateLimiting;
      const { rateLimits } = this.#stores;
      // Without a shared store, each worker enforces an equal part of the limit.
      const share = rateLimits ? 1 : this.#workers;
      parts.push(
        this.#part(`${owner} rateLimiting`, [rateLimiting, share], () =>
          rateLimit({
            limits: [
              {
                name: limitName(owner),
                rate: `${requestsPerSecond / share}/s`,
                burst: Math.max(1, Math.ceil(burstSize / share)),
              },
            ],
            perRoute: false,
            reportOnly,
            fields: 'refused',
            ...(key === 'client' ? {} : { key: callerKey(key) }),
            ...(this.#trusted && { proxies: this.#trusted }),
            ...(rateLimits && { rateLimits, nodes: this.#workers }),
          }),
        ),
      );
    }
    if (permits) {
      parts.push(
        this.#part(`${owner} bulkhead`, permits, () =>
          bulkhead({
            concurrent: permits.maxConcurrentRequests,
            queueMax: permits.maxQueuedRequests,
            queueTimeout: permits.queueTimeoutMs,
          }),
        ),
      );
    }
    if (shedding) {
      parts.push(
        this.#part(`${owner} shedding`, shedding, () =>
          shed({
            initial: shedding.initial,
            floor: shedding.floor,
            ceiling: shedding.ceiling,
            reserve: shedding.reserve,
            queueMax: shedding.maxQueuedRequests,
            queueTimeout: shedding.queueTimeoutMs,
            priority: priorityOf,
            tenant: ({ native }) => headOf(native as object).client,
          }),
        ),
      );
    }
    return parts;
  }

  #idempotency(owner: string, { idempotency: config }: Protections): Part[] {
    if (!config) return [];
    const scope = config.scope;
    return [
      this.#part(`${owner} idempotency`, config, () =>
        idempotency({
          ledger: this.#stores.ledger,
          scope: scope === 'public' ? 'public' : scopeOf(scope),
          required: config.required,
          methods: config.methods,
          keep: config.keepMs,
          wait: config.waitMs,
          lease: config.leaseMs,
          bodyMax: config.bodyBytesMax,
        }),
      ),
    ];
  }

  #part(name: string, settings: unknown, make: () => Part): Part {
    const key = `${name} ${JSON.stringify(settings)}`;
    const part = this.#used.get(key) ?? this.#made.get(key) ?? make();
    this.#used.set(key, part);
    return part;
  }
}

function priorityOf({ native }: Exchange): RouteConfig['priority'] {
  const head = headOf(native as object);
  return head.priority ?? head.route!.config.priority;
}

function limitName(owner: string): string {
  return `${owner.replace(/[^\w.-]+/g, '-').slice(0, 48)}-${fnv1a(owner).toString(36)}`;
}

/**
 * Returns a function that returns the caller of a request. If that function returns `undefined`, the client's
 * address is used.
 */
function callerKey(key: string): (exchange: Exchange) => string | undefined {
  if (key === 'all') return () => 'all';
  const name = key.slice('header:'.length);
  return ({ native }) => headOf(native as object).header(name);
}

function scopeOf(scope: string): (exchange: Exchange) => string | undefined {
  if (scope === 'client') return ({ native }) => headOf(native as object).client;
  const name = scope.slice('header:'.length);
  return ({ native }) => headOf(native as object).header(name);
}

function degradeOptions({ staleMs, static: fixed }: FallbackConfig) {
  const response: PlainResponse | undefined = fixed && {
    status: fixed.status,
    headers: fixed.headers,
    body: fixed.body,
  };
  return {
    staleFor: staleMs ?? 1,
    ...(staleMs === undefined && { bytesMax: 0 }),
    ...(response && { fallback: () => response }),
  };
}
