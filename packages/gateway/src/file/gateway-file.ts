import { mapOf, needed } from '@holdfast/config';
import { hedge, OptionsError, type PolicySpec } from 'holdfast';
import {
  anything,
  count,
  duration,
  either,
  type Field,
  flag,
  list,
  number,
  type SpecOf,
  shape,
  text,
  word,
} from 'holdfast/fields';
import {
  address,
  block,
  callerField,
  headerName,
  headerValue,
  hostPattern,
  instanceUrl,
  methodField,
  pathField,
  policyField,
  size,
} from './field-kinds.ts';

const unlimited = { unlimited: Infinity };

const shedding = block({
  initial: count(20, 1),
  floor: count(4, 1),
  ceiling: count(1000, 1),
  reserve: number(0.1, 0, 1),
  maxQueuedRequests: count(50, 0),
  queueTimeout: duration('100ms'),
});

/**
 * The protections (such as rate limits) of a route, an upstream, `defaults` or a service in the form of
 * Kubernetes.
 */
export const protectionFields = {
  /** A circuit breaker for each instance. `timeout` is how long it stays open. */
  circuitBreaker: block({
    /** This many failures in a row open the breaker. With heavy traffic, more failures are needed. */
    failureThreshold: count(10, 1),
    timeout: duration('30s', undefined, 1),
    /** The most concurrent requests while the breaker is half-open. As many successes in a row close it. */
    halfOpenRequests: count(3, 1),
    /** The breaker also opens at this share of failed requests within `window`, from `minimumRequests` on. */
    failureRatio: number(0.5, 0, 1),
    window: duration('30s', undefined, 1),
    minimumRequests: count(20, 1),
  }),
  rateLimiting: block({
    requestsPerSecond: number(1000, 0.001),
    /** How many requests may come at once. Default: twice `requestsPerSecond`. */
    burstSize: count(undefined, 1),
    /**
     * Which callers share one limit: all callers, those of a client address, or those with the same header
     * value.
     */
    key: callerField('all', 'all', 'client'),
    /** True: requests above the limit are counted, but not rejected. */
    reportOnly: flag(false),
  }),
  bulkhead: block({
    maxConcurrentRequests: count(100, 1),
    maxQueuedRequests: count(50, 0),
    queueTimeout: duration('1s'),
  }),
  shedding: {
    ...shedding,
    read(value: unknown, path: string) {
      const read = shedding.read(value, path);
      if (read && read.ceiling < read.floor)
        throw new OptionsError(`${path}.ceiling`, read.ceiling, `at least the floor of ${read.floor}`);
      return read;
    },
  } as typeof shedding,
  retry: policyField,
  hedge: hedge.fields.hedge,
  idempotency: block({
    /**
     * How callers are distinguished. Each caller has its own idempotency keys. With a wrong scope, one caller
     * gets the response of another.
     */
    scope: needed(callerField(undefined, 'public', 'client')),
    /** True: requests without an idempotency key are rejected. */
    required: flag(false),
    methods: list(methodField, ['POST', 'PATCH']),
    keep: duration('24h'),
    /**
     * How long a repeated request waits for the response of the first one. After that, the repeated request
     * gets a 409.
     */
    wait: duration('0ms'),
    lease: duration('30s', undefined, 100),
    maxBody: size('1MiB'),
  }),
  timeouts: shape({
    /** The timeout until the response begins, with all retries. Default: 30 s, or the patience of `retry`. */
    request: duration(undefined, unlimited, 1),
    /** The timeout of one attempt. Default: learnt if there are retries, otherwise the whole request. */
    attempt: duration(undefined, { auto: 0, none: Infinity }, 1),
    connect: duration('2s', undefined, 1),
    /** A response is aborted if no byte of its body arrives for this time. */
    idle: duration('5m', unlimited, 1),
  }),
} as const satisfies Record<string, Field>;

const headerChanges = shape({
  set: mapOf(headerValue, {}),
  remove: list(headerName, []),
});

const matchFields = {
  host: list(hostPattern),
  /** Matches this path and all paths below it. */
  path: { ...pathField, default: '/' },
  /** Matches this path only. */
  exact: pathField,
  methods: list(methodField),
};

const fallbackFields = {
  /** Answers with the last good response to the same GET, if it is at most this old. */
  stale: duration(undefined, undefined, 1),
  /** The name of another route that gets the request. This is possible only if the request body was kept. */
  route: text(),
  static: shape({
    status: count(200, 200),
    headers: mapOf(headerValue, {}),
    body: text(),
  }),
};

const routeFields = {
  name: text(),
  match: either('/', pathField, shape(matchFields)),
  upstream: needed(text()),
  /** The path that replaces the matched path. */
  rewrite: pathField,
  priority: word('default', 'critical', 'default', 'sheddable'),
  headers: shape({ request: headerChanges, response: headerChanges }),
  fallback: shape(fallbackFields),
  websocket: flag(true),
  maxBody: size(),
  ...protectionFields,
};

const tlsOutFields = {
  ca: text(),
  cert: text(),
  key: text(),
  servername: text(),
  insecureSkipVerify: flag(false),
};

const instanceField = either(
  undefined,
  instanceUrl,
  shape({ url: needed(instanceUrl), weight: count(1, 1), zone: text() }),
);

const strategies = word('p2c', 'p2c', 'roundRobin', 'hash');

export const upstreamFields = {
  instances: needed(list(instanceField)),
  loadBalancing: either(
    'p2c',
    strategies,
    shape({ strategy: strategies, on: callerField('client', 'client', 'path') }),
  ),
  healthCheck: block({
    path: { ...pathField, default: '/health' },
    interval: duration('10s', undefined, 10),
    timeout: duration('3s', undefined, 1),
    unhealthyThreshold: count(3, 1),
    healthyThreshold: count(2, 1),
  }),
  /** An instance that fails more often than the others gets no requests for a while. On unless `false`. */
  outlierEjection: block({
    consecutive: count(5, 1),
    ejectFor: duration('10s', undefined, 1),
    maxEjectFor: duration('5m', undefined, 1),
  }),
  /** If a smaller share of the instances is healthy, all instances get requests. */
  panicThreshold: number(0.5, 0, 1),
  /** The traffic of a new or recovered instance grows over this time to its full share. */
  slowStart: duration('0ms'),
  /** The most connections to one instance. */
  connections: count(128, 1),
  http2: flag(false),
  tls: shape(tlsOutFields),
  /** How often host names are resolved again. Each address becomes an instance. */
  resolveEvery: duration('30s', { never: Infinity }, 100),
  ...protectionFields,
};

const listenShape = shape({
  host: text('127.0.0.1'),
  port: count(8080, 0),
  tls: shape({ cert: needed(text()), key: needed(text()), clientCa: text() }),
  /**
   * HTTP/2. Without TLS, clients must know that the gateway speaks it (prior knowledge). Default: on with
   * TLS, off without.
   */
  http2: flag(),
  /** Proxies whose `Forwarded` and `X-Forwarded-*` headers are trusted: addresses or networks. */
  trustedProxies: list(text(), []),
  maxHeaderSize: size('16KiB'),
  maxHeaders: count(100, 1),
  maxConnectionsPerClient: count(1024, 1),
  headersTimeout: duration('10s', undefined, 1),
  bodyTimeout: duration('60s', undefined, 1),
  writeTimeout: duration('30s', undefined, 1),
  keepAlive: duration('65s', undefined, 1),
});

const adminShape = shape({
  host: text('127.0.0.1'),
  port: count(9901, 0),
  token: text(),
});

/** A service in the form of Kubernetes. A file can contain a single service, or several under `services`. */
export const serviceFields = {
  apiVersion: text(),
  kind: needed(word(undefined, 'Service')),
  metadata: needed(
    shape({ name: needed(text()), namespace: text(), labels: anything(), annotations: anything() }),
  ),
  spec: needed(
    shape({
      /** Default: the host name of the service in its cluster, with the first port. */
      instances: list(instanceField),
      ports: list(
        shape({ name: text(), protocol: text(), port: needed(count(undefined, 1)), targetPort: anything() }),
      ),
      selector: anything(),
      type: text(),
      clusterIP: text(),
      /** Default: one route for all requests. */
      routes: list(shape({ match: either('/', pathField, shape(matchFields)), rewrite: pathField })),
      resilience: shape({
        ...protectionFields,
        healthCheck: upstreamFields.healthCheck,
        outlierEjection: upstreamFields.outlierEjection,
        loadBalancing: upstreamFields.loadBalancing,
      }),
    }),
  ),
};

const policyMap = mapOf(policyField as Field<PolicySpec, PolicySpec>, {});

/** Validation, the JSON Schema and the type `GatewayFile` are all derived from this table. */
export const gatewayFields = {
  listen: either(8080, address, listenShape),
  /** The admin API. `false`: it is off. */
  admin: either(9901, flag(), address, adminShape),
  /** The number of worker processes; `auto`: one per processor core. */
  workers: count(1, 1, { auto: 0 }),
  /** The zone of this gateway. Instances in the same zone are preferred. */
  zone: text(),
  include: list(text(), []),
  /** Policies by name, which `retry` can refer to. */
  policies: policyMap,
  /** A file with policies that `retry` can refer to, for example the policy file of your services. */
  policyFile: text(),
  stores: shape({ ledger: text(), rateLimits: text() }),
  /** Protections (such as rate limits) for each upstream that does not set its own. */
  defaults: shape({ ...protectionFields, healthCheck: upstreamFields.healthCheck }),
  upstreams: mapOf(shape(upstreamFields), {}),
  routes: list(shape(routeFields), []),
  services: list(shape(serviceFields), []),
  /** Request bodies up to this size are kept in memory, so that a retry can send them again. */
  keptBody: size('64KiB'),
  /** Longer request bodies are rejected with 413. */
  maxBody: size('10MiB'),
  /** `true` for the standard output, or the name of a file. The log has one line of JSON per request. */
  accessLog: either(false, flag(), text()),
  serverTiming: flag(false),
  /** OpenTelemetry spans, by the OpenTelemetry API that is loaded in the process. */
  tracing: flag(false),
  /** How many stories (records of retried and failed requests) each worker keeps in memory. */
  stories: count(1000, 0),
  shutdown: shape({ delay: duration('0ms'), drain: duration('30s') }),
};

export { routeFields };

/** A gateway file as it is written, before defaults are filled in. */
export type GatewayFile = SpecOf<typeof gatewayFields>;
/** A route as it is written in a gateway file. */
export type RouteSpec = SpecOf<typeof routeFields>;
/** An upstream as it is written in a gateway file. */
export type UpstreamSpec = SpecOf<typeof upstreamFields>;
/** A service in the form of Kubernetes, as it is written in a file. */
export type ServiceSpec = SpecOf<typeof serviceFields>;
