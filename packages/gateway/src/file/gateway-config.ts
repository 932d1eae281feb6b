import type { PolicySpec, Priority } from 'holdfast';
import type { Caller } from './field-kinds.ts';

/**
 * A gateway file after all checks. Defaults are filled in and names are resolved; durations are in ms, sizes
 * in bytes. A block that is off is null.
 */
export interface GatewayConfig {
  /** The files that were read, the main file first. */
  readonly files: readonly string[];
  readonly listen: ListenConfig;
  readonly admin: AdminConfig | null;
  /** The number of worker processes. 0: one per processor core. */
  readonly workers: number;
  readonly zone: string | undefined;
  readonly stores: StoresConfig;
  /** The upstreams in the order of the file. Their names are unique. */
  readonly upstreams: readonly UpstreamConfig[];
  /** The routes in the order of the file. The order does not matter: the most specific route is taken. */
  readonly routes: readonly RouteConfig[];
  readonly keptBodyBytes: number;
  /** False: off. True: to the standard output. A text: to the file of this name. */
  readonly accessLog: boolean | string;
  readonly serverTiming: boolean;
  readonly tracing: boolean;
  readonly storiesMax: number;
  readonly shutdown: { readonly delayMs: number; readonly drainMs: number };
  /** Small durations without a unit, which `lintGateway` asks about. Default: none. */
  readonly bareDurations?: readonly BareDuration[] | undefined;
}

/** A duration that the file has as a small number without a unit, such as `timeout: 30`. */
export interface BareDuration {
  /** The file, line and column: `gateway.yaml:7:24`. */
  readonly place: string;
  /** The path of the field, such as `upstreams.orders.circuitBreaker.timeout`. */
  readonly path: string;
  readonly ms: number;
}

/** The address on which clients connect, and the limits of their connections. */
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

/** The address of the admin API, and its token. */
export interface AdminConfig {
  readonly host: string;
  readonly port: number;
  /** Undefined: a random token is generated at the start, and is printed once. */
  readonly token: string | undefined;
}

/** The URLs of shared stores. Undefined: each worker uses its own memory. */
export interface StoresConfig {
  readonly ledger: string | undefined;
  readonly rateLimits: string | undefined;
}

/**
 * A service with interchangeable instances, and the protections (such as rate limits) that all its routes
 * share.
 */
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
  /** How often host names are resolved again. Infinity: never. */
  readonly resolveEveryMs: number;
  /** Protections (such as rate limits) that count all requests to this upstream, from all routes. */
  readonly protections: Protections;
  /** How requests are sent and retried, if the route does not have its own settings for that. */
  readonly attempts: AttemptsConfig;
}

/** One server of an upstream. An instance with twice the `weight` gets twice the requests. */
export interface InstanceConfig {
  /** The URL, such as `http://10.0.0.1:3000`. It is also the name of the instance in logs and commands. */
  readonly url: string;
  readonly weight: number;
  readonly zone: string | undefined;
}

/** How an instance is selected for a request. */
export interface LoadBalancingConfig {
  readonly strategy: 'p2c' | 'roundRobin' | 'hash';
  /** For the strategy `hash`: what the hash is computed from. */
  readonly on: Caller<'client' | 'path'>;
}

/** How the gateway checks the health of instances. */
export interface HealthCheckConfig {
  readonly path: string;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly unhealthyThreshold: number;
  readonly healthyThreshold: number;
}

/** After how many failures in a row an instance gets no more requests, and for how long. */
export interface OutlierEjectionConfig {
  readonly consecutive: number;
  readonly ejectForMs: number;
  readonly maxEjectForMs: number;
}

/** TLS settings for connections to instances. Certificates and keys are PEM text. */
export interface UpstreamTlsConfig {
  /** `ca`, `cert` and `key` are the contents of PEM files. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly servername: string | undefined;
  readonly insecureSkipVerify: boolean;
}

/** A route with its settings. Missing settings are inherited from its upstream. */
export interface RouteConfig {
  readonly name: string;
  readonly match: MatchConfig;
  readonly upstream: string;
  /** The path that replaces the matched path; undefined: the path stays unchanged. */
  readonly rewrite: string | undefined;
  readonly priority: Priority;
  readonly requestHeaders: HeaderChanges;
  readonly responseHeaders: HeaderChanges;
  readonly fallback: FallbackConfig | null;
  readonly websocket: boolean;
  readonly bodyBytesMax: number;
  /** Protections (such as rate limits) of this route only. Those of its upstream apply in addition. */
  readonly protections: Protections;
  /**
   * How requests of this route are sent and retried. A route without own settings shares the breakers and the
   * retry budget of its upstream.
   */
  readonly attempts: AttemptsConfig;
}

/** The requests that a route matches. An empty list matches all. */
export interface MatchConfig {
  /** Host names in lower case; `*.example.com` is for all names below it. Empty: every host. */
  readonly hosts: readonly string[];
  readonly path: string;
  readonly isExact: boolean;
  /** Methods in upper case. Empty: every method. */
  readonly methods: readonly string[];
}

/** Headers that the gateway sets, and headers that it removes. */
export interface HeaderChanges {
  readonly set: Readonly<Record<string, string>>;
  readonly remove: readonly string[];
}

/**
 * What the client gets when a request fails: an older response, the response of another route, or a fixed
 * response.
 */
export interface FallbackConfig {
  readonly staleMs: number | undefined;
  readonly route: string | undefined;
  readonly static:
    | { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: string }
    | undefined;
}

/** Protections (such as rate limits) that a request must pass before it is sent to the upstream. */
export interface Protections {
  readonly rateLimiting: RateLimitingConfig | null;
  readonly bulkhead: BulkheadConfig | null;
  readonly shedding: SheddingConfig | null;
  readonly idempotency: IdempotencyConfig | null;
}

/** The rate limit of callers. With `reportOnly`, requests above the limit are counted but not rejected. */
export interface RateLimitingConfig {
  readonly requestsPerSecond: number;
  /** How many requests may come at once. */
  readonly burstSize: number;
  readonly key: Caller<'all' | 'client'>;
  readonly reportOnly: boolean;
}

/** How many requests may run at the same time, how many may wait, and for how long. */
export interface BulkheadConfig {
  readonly maxConcurrentRequests: number;
  readonly maxQueuedRequests: number;
  readonly queueTimeoutMs: number;
}

/**
 * Adaptive load shedding: a limit of concurrent requests that adapts itself between `floor` and `ceiling`.
 */
export interface SheddingConfig {
  readonly initial: number;
  readonly floor: number;
  readonly ceiling: number;
  readonly reserve: number;
  readonly maxQueuedRequests: number;
  readonly queueTimeoutMs: number;
}

/** How the gateway executes a request with an `Idempotency-Key` only once. */
export interface IdempotencyConfig {
  readonly scope: Caller<'public' | 'client'>;
  readonly required: boolean;
  readonly methods: readonly string[];
  readonly keepMs: number;
  readonly waitMs: number;
  readonly leaseMs: number;
  readonly bodyBytesMax: number;
}

/** How a request is sent to its upstream, with retries and timeouts. */
export interface AttemptsConfig {
  /** The complete policy for `policy()` of the package `holdfast`. Without `retry` it makes one attempt. */
  readonly policy: PolicySpec;
  /** True: the route has its own `circuitBreaker`, `retry`, `hedge` or `timeouts`. */
  readonly isOwn: boolean;
  /**
   * True: the route has its own `circuitBreaker`, so its breakers are separate from those of its upstream.
   */
  readonly hasOwnBreakers: boolean;
  /** Null: there is no breaker. */
  readonly circuitBreaker: CircuitBreakerConfig | null;
  readonly hasRetries: boolean;
  readonly hasHedge: boolean;
  readonly requestTimeoutMs: number;
  /** The timeout of one attempt. 0: it is learnt. Infinity: only the timeout of the whole request applies. */
  readonly attemptTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
}

/** When a failing instance gets no more requests, and when it gets requests again. */
export interface CircuitBreakerConfig {
  readonly failureThreshold: number;
  readonly timeoutMs: number;
  readonly halfOpenRequests: number;
  readonly failureRatio: number;
  readonly windowMs: number;
  readonly minimumRequests: number;
}
