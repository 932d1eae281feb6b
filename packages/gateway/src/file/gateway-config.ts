import type { PolicySpec, Priority } from 'holdfast';
import type { Caller } from './field-kinds.ts';

/**
 * A gateway file after all checks: defaults are filled in, durations are ms, sizes are bytes, names are resolved, and
 * services in the form of Kubernetes have become routes and upstreams. A block that is off is null.
 */
export interface GatewayConfig {
  /** The files that were read, the main file first. */
  readonly files: readonly string[];
  readonly listen: ListenConfig;
  readonly admin: AdminConfig | null;
  /** 0: one for each core. */
  readonly workers: number;
  readonly zone: string | undefined;
  readonly stores: StoresConfig;
  /** In the order of the file. The names are unique. */
  readonly upstreams: readonly UpstreamConfig[];
  /** In the order of the file. Which route is taken does not depend on this order: see `RouteTable`. */
  readonly routes: readonly RouteConfig[];
  readonly keptBodyBytes: number;
  /** False, true for the standard output, or a file. */
  readonly accessLog: boolean | string;
  readonly serverTiming: boolean;
  readonly tracing: boolean;
  readonly storiesMax: number;
  readonly shutdown: { readonly delayMs: number; readonly drainMs: number };
}

/** Where clients connect to, and the limits of their connections. */
export interface ListenConfig {
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly cert: string; readonly key: string; readonly clientCa: string | undefined } | null;
  readonly http2: boolean;
  readonly trustedProxies: readonly string[];
  readonly headerBytesMax: number;
  readonly headersMax: number;
  readonly connectionsPerClientMax: number;
  readonly headersTimeoutMs: number;
  readonly bodyTimeoutMs: number;
  readonly writeTimeoutMs: number;
  readonly keepAliveMs: number;
}

/** Where the admin API listens. Without `token` a random one is made at the start. */
export interface AdminConfig {
  readonly host: string;
  readonly port: number;
  /** Undefined: a random token is made at the start, and is printed once. */
  readonly token: string | undefined;
}

/** URLs of shared stores. Undefined: each worker has its own, in memory. */
export interface StoresConfig {
  readonly ledger: string | undefined;
  readonly rateLimits: string | undefined;
}

/** A service of interchangeable instances, with the protections that all its routes share. */
export interface UpstreamConfig {
  readonly name: string;
  readonly instances: readonly InstanceConfig[];
  readonly loadBalancing: LoadBalancingConfig;
  readonly healthCheck: HealthCheckConfig | null;
  readonly outlierEjection: OutlierEjectionConfig | null;
  readonly panicThreshold: number;
  readonly slowStartMs: number;
  readonly connectionsMax: number;
  readonly http2: boolean;
  readonly tls: UpstreamTlsConfig;
  /** Infinity: never. */
  readonly resolveEveryMs: number;
  /** Protections of all requests to this upstream, whichever route they come from. */
  readonly protections: Protections;
  /** How requests of routes without `retry`, `circuitBreaker`, `hedge` and `timeouts` of their own are sent. */
  readonly attempts: AttemptsConfig;
}

/** One server of an upstream. `weight` is its share of the requests beside the others. */
export interface InstanceConfig {
  /** `http://10.0.0.1:3000`: the name of the instance everywhere. */
  readonly url: string;
  readonly weight: number;
  readonly zone: string | undefined;
}

/** How an instance is chosen. `on` is what `hash` is made of. */
export interface LoadBalancingConfig {
  readonly strategy: 'p2c' | 'roundRobin' | 'hash';
  /** What is hashed with `hash`. */
  readonly on: Caller<'client' | 'path'>;
}

/** How instances are asked whether they are well. */
export interface HealthCheckConfig {
  readonly path: string;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly unhealthyThreshold: number;
  readonly healthyThreshold: number;
}

/** After how many failures in a row an instance is left out, and for how long. */
export interface OutlierEjectionConfig {
  readonly consecutive: number;
  readonly ejectForMs: number;
  readonly maxEjectForMs: number;
}

/** TLS to the instances: authorities and keys as PEM text. */
export interface UpstreamTlsConfig {
  /** Contents of PEM files. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly servername: string | undefined;
  readonly insecureSkipVerify: boolean;
}

/** A route with all its protections, those of its upstream included. */
export interface RouteConfig {
  readonly name: string;
  readonly match: MatchConfig;
  readonly upstream: string;
  /** The matched path is replaced by this one; undefined: the path is not changed. */
  readonly rewrite: string | undefined;
  readonly priority: Priority;
  readonly requestHeaders: HeaderChanges;
  readonly responseHeaders: HeaderChanges;
  readonly fallback: FallbackConfig | null;
  readonly websocket: boolean;
  readonly bodyBytesMax: number;
  /** Protections of this route alone, besides those of its upstream. */
  readonly protections: Protections;
  /**
   * How requests of this route are retried and timed: the route's own blocks, then those of its upstream. A route
   * without a block of its own shares the breakers and the retry budget of its upstream.
   */
  readonly attempts: AttemptsConfig;
}

/** Which requests a route is for. An empty list fits all. */
export interface MatchConfig {
  /** Lower case; `*.example.com` for all names below. Empty: every host. */
  readonly hosts: readonly string[];
  readonly path: string;
  readonly isExact: boolean;
  /** Upper case. Empty: every method. */
  readonly methods: readonly string[];
}

/** Headers that the gateway sets, and headers that it takes away. */
export interface HeaderChanges {
  readonly set: Readonly<Record<string, string>>;
  readonly remove: readonly string[];
}

/** What stands in for a failed response: an older one, another route, or a fixed one. */
export interface FallbackConfig {
  readonly staleMs: number | undefined;
  readonly route: string | undefined;
  readonly static:
    | { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: string }
    | undefined;
}

/** Protections that stand before the upstream is called. */
export interface Protections {
  readonly rateLimiting: RateLimitingConfig | null;
  readonly bulkhead: BulkheadConfig | null;
  readonly shedding: SheddingConfig | null;
  readonly idempotency: IdempotencyConfig | null;
}

/** How many requests a caller may send. With `reportOnly` they are counted and not refused. */
export interface RateLimitingConfig {
  readonly requestsPerSecond: number;
  readonly burstSize: number;
  readonly key: Caller<'all' | 'client'>;
  readonly reportOnly: boolean;
}

/** How many requests run at the same time, and how many wait for how long. */
export interface BulkheadConfig {
  readonly maxConcurrentRequests: number;
  readonly maxQueuedRequests: number;
  readonly queueTimeoutMs: number;
}

/** How many requests run at the same time: a limit that learns, between `floor` and `ceiling`. */
export interface SheddingConfig {
  readonly initial: number;
  readonly floor: number;
  readonly ceiling: number;
  readonly reserve: number;
  readonly maxQueuedRequests: number;
  readonly queueTimeoutMs: number;
}

/** How requests with an `Idempotency-Key` are executed once. */
export interface IdempotencyConfig {
  readonly scope: Caller<'public' | 'client'>;
  readonly required: boolean;
  readonly methods: readonly string[];
  readonly keepMs: number;
  readonly waitMs: number;
  readonly leaseMs: number;
  readonly bodyBytesMax: number;
}

/** How a request is sent to its upstream, and sent again. */
export interface AttemptsConfig {
  /**
   * The whole policy as core reads it, for `policy()`, `explain` and `lint`: patience and attempt timeout from
   * `timeouts`, breaker from `circuitBreaker`, the rest from `retry` and `hedge`. One attempt without `retry`.
   */
  readonly policy: PolicySpec;
  /** The route says its own `circuitBreaker`, `retry`, `hedge` or `timeouts`. */
  readonly isOwn: boolean;
  /** The route says its own `circuitBreaker`, so its breakers are not those of the upstream. */
  readonly hasOwnBreakers: boolean;
  /** Null: off. */
  readonly circuitBreaker: CircuitBreakerConfig | null;
  readonly hasRetries: boolean;
  readonly hasHedge: boolean;
  readonly requestTimeoutMs: number;
  /** 0: learnt. Infinity: the whole request. */
  readonly attemptTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
}

/** When requests to a failing instance stop, and when they begin again. */
export interface CircuitBreakerConfig {
  readonly failureThreshold: number;
  readonly timeoutMs: number;
  readonly halfOpenRequests: number;
  readonly failureRatio: number;
  readonly windowMs: number;
  readonly minimumRequests: number;
}
