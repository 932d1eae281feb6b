import type { GatewayConfig, RouteConfig, UpstreamConfig } from '../file/gateway-config.ts';
import { attemptSettings } from './attempt-settings.ts';
import { hasOwnCluster } from './envoy-clusters.ts';

/** How well a data plane supports a feature. `missing` and `approximated` give the reason. */
export type Feature = true | { readonly missing: string } | { readonly approximated: string };

/** The features of a gateway file, and how well a data plane supports each. */
export interface Features {
  /** Routes by host, path and method, path rewrites, and changes of headers. */
  readonly routing: Feature;
  readonly weights: Feature;
  readonly zones: Feature;
  /**
   * The deadline that the caller sends (`Holdfast: patience`, `X-Request-Timeout-Ms`) shortens the timeout.
   */
  readonly callerDeadline: Feature;
  /** `timeouts.request` covers all attempts together. */
  readonly requestTimeout: Feature;
  /** The timeout of an attempt is learnt from measured latencies. */
  readonly learntTimeout: Feature;
  readonly idleTimeout: Feature;
  /**
   * Retries go to another instance if possible. POST and PATCH are retried only with an `Idempotency-Key`, or
   * if nothing was sent.
   */
  readonly retries: Feature;
  /** `retryOn`, `retryOnly`, `neverOn`, and backoff that is not exponential. */
  readonly retryRules: Feature;
  /** Successful requests add to the retry budget, and all requests to an upstream share it. */
  readonly retryBudget: Feature;
  readonly hedge: Feature;
  readonly circuitBreaker: Feature;
  /** A breaker in the policy under `retry`, in place of the block `circuitBreaker`. */
  readonly policyBreaker: Feature;
  /** Operators can force a breaker open or closed. */
  readonly forcedBreaker: Feature;
  readonly outlierEjection: Feature;
  readonly healthCheck: Feature;
  /** If the share of healthy instances is below `panicThreshold`, health is ignored. */
  readonly panic: Feature;
  readonly slowStart: Feature;
  readonly rateLimiting: Feature;
  /** Rate limits that several gateways share through a store. */
  readonly sharedRateLimits: Feature;
  readonly reportOnly: Feature;
  readonly bulkhead: Feature;
  /** The limits of an upstream count the requests of all its routes. */
  readonly upstreamBulkhead: Feature;
  readonly shedding: Feature;
  readonly priority: Feature;
  readonly idempotency: Feature;
  readonly staleFallback: Feature;
  readonly staticFallback: Feature;
  readonly routeFallback: Feature;
  /** Request bodies that are longer than `maxBody` are rejected. */
  readonly bodyLimit: Feature;
  readonly connectionsPerClient: Feature;
  /** The gateway adds its own entry to the `Forwarded` header (RFC 7239) of a trusted proxy. */
  readonly forwardedHeader: Feature;
  /** The `Holdfast` header of a response says whether the client may repeat the request. */
  readonly retryAdvice: Feature;
  readonly stories: Feature;
  readonly accessLog: Feature;
  readonly serverTiming: Feature;
  readonly tracing: Feature;
  readonly websocket: Feature;
  readonly streaming: Feature;
  readonly reload: Feature;
  /** Breakers, ejections and limits keep their state when the file is reloaded. */
  readonly keptState: Feature;
  readonly drain: Feature;
}

/** The name of a feature that a data plane may not support. */
export type FeatureName = keyof Features;

/** The Node data plane supports all features: it is the reference. */
export const nodeFeatures: Features = Object.freeze({
  routing: true,
  weights: true,
  zones: true,
  callerDeadline: true,
  requestTimeout: true,
  learntTimeout: true,
  idleTimeout: true,
  retries: true,
  retryRules: true,
  retryBudget: true,
  hedge: true,
  circuitBreaker: true,
  policyBreaker: true,
  forcedBreaker: true,
  outlierEjection: true,
  healthCheck: true,
  panic: true,
  slowStart: true,
  rateLimiting: true,
  sharedRateLimits: true,
  reportOnly: true,
  bulkhead: true,
  upstreamBulkhead: true,
  shedding: true,
  priority: true,
  idempotency: true,
  staleFallback: true,
  staticFallback: true,
  routeFallback: true,
  bodyLimit: true,
  connectionsPerClient: true,
  forwardedHeader: true,
  retryAdvice: true,
  stories: true,
  accessLog: true,
  serverTiming: true,
  tracing: true,
  websocket: true,
  streaming: true,
  reload: true,
  keptState: true,
  drain: true,
});

/** What the Envoy data plane (version 1.39) can do of a gateway file, and why it cannot do the rest. */
export const envoyFeatures: Features = Object.freeze({
  ...nodeFeatures,
  callerDeadline: missing('Envoy does not read how long the caller waits'),
  requestTimeout: approximated(
    'Envoy limits each attempt until the response begins, and not all attempts together: its own limit for the whole would cut long responses',
  ),
  learntTimeout: missing(
    'Envoy learns no timeouts: without timeouts.attempt each attempt has an equal share of timeouts.request',
  ),
  idleTimeout: approximated('Envoy counts the wait for the beginning of the response as idle time, too'),
  retryRules: missing(
    'Envoy retries the statuses and failures that are retried by default, and waits exponentially with full jitter',
  ),
  retryBudget: approximated(
    'Envoy limits retries in flight to a share of the requests in flight, at least 3; successes do not feed it',
  ),
  hedge: approximated(
    'Envoy sends the second attempt after a fixed time, and at most one for each attempt; a percentile is not learnt, and extraLoad does not limit it',
  ),
  circuitBreaker: approximated(
    'Envoy ejects an instance after consecutive failures or a share of failures, and brings it back after the time without probes: halfOpenRequests and window have no meaning',
  ),
  policyBreaker: missing('only circuitBreaker is translated for Envoy'),
  forcedBreaker: missing('Envoy has no breaker that could be forced; an instance can be drained instead'),
  outlierEjection: approximated(
    'Envoy ejects after consecutive failures alone, without a comparison with the other instances; where circuitBreaker is on, its numbers are used instead',
  ),
  healthCheck: approximated('in Envoy an instance gets requests only after its first good check'),
  panic: approximated(
    'in Envoy a panic also sends requests to instances that are ejected, so with health checks an upstream whose breakers are all open is still called; without health checks there is no panic where circuitBreaker is on',
  ),
  rateLimiting: approximated(
    'Envoy uses token buckets in whole tokens, tells no Retry-After, and forgets callers beyond 100,000',
  ),
  sharedRateLimits: missing('each Envoy has its own limits; all its workers share them'),
  reportOnly: missing('a limit that only counts is left out'),
  bulkhead: approximated(
    'Envoy limits connections and queued requests of an upstream; it always allows one connection to each instance, its queue is longer by maxConcurrentRequests, and queueTimeout has no meaning: a request waits as long as its attempt may take',
  ),
  upstreamBulkhead: approximated(
    'a route with its own bulkhead, circuitBreaker, retry, hedge or timeouts is counted apart from the other routes of its upstream',
  ),
  shedding: missing('Envoy has no limit that adapts and refuses the least important requests first'),
  priority: missing('Envoy does not distinguish requests by importance'),
  idempotency: missing('Envoy keeps no responses by idempotency key: a repeated request is executed again'),
  staleFallback: missing('Envoy keeps no earlier responses for the time of a failure'),
  staticFallback: missing('Envoy passes the failure on'),
  routeFallback: missing('Envoy passes the failure on'),
  bodyLimit: approximated('Envoy refuses a body by its content-length; one without a length is not limited'),
  connectionsPerClient: missing('Envoy does not count the connections of a client'),
  forwardedHeader: missing('Envoy writes X-Forwarded-For, and does not write Forwarded'),
  retryAdvice: missing('Envoy does not tell clients whether a request was sent and may be repeated'),
  stories: missing('Envoy keeps no stories; its access log has the number of attempts and a reason'),
  accessLog: approximated('Envoy writes its own reasons and flags, and the last instance alone'),
  serverTiming: approximated('Envoy tells the time until the response began, and no attempts'),
  tracing: missing(
    'Envoy sends spans itself, and needs the address of a collector, which the file does not have',
  ),
  keptState: approximated(
    'Envoy keeps health and ejections of a cluster that does not change; limits start anew when the limits of the file change',
  ),
});

/** A feature that the file uses, and that Envoy does not support as the file says. */
export interface EnvoyLoss {
  readonly feature: FeatureName;
  readonly kind: 'missing' | 'approximated';
  readonly reason: string;
  /** The parts of the file that use the feature: `upstream orders`, `route /orders/*`, `gateway`. */
  readonly where: readonly string[];
}

/** Returns the features that are lost if Envoy runs this file, missing ones first. Empty: nothing is lost. */
export function envoyLosses(config: GatewayConfig): EnvoyLoss[] {
  const losses = (Object.keys(envoyFeatures) as FeatureName[]).flatMap((feature): EnvoyLoss[] => {
    const found = envoyFeatures[feature];
    const where = found === true ? [] : usesOf(feature, config);
    if (found === true || where.length === 0) return [];
    return 'missing' in found
      ? [{ feature, kind: 'missing', reason: found.missing, where }]
      : [{ feature, kind: 'approximated', reason: found.approximated, where }];
  });
  return losses.sort((a, b) => Number(b.kind === 'missing') - Number(a.kind === 'missing'));
}

type Uses = {
  readonly gateway?: (config: GatewayConfig) => boolean;
  readonly upstream?: (upstream: UpstreamConfig, config: GatewayConfig) => boolean;
  readonly route?: (route: RouteConfig, config: GatewayConfig) => boolean;
};

const always = () => true;

/** Which parts of a file use a feature. Features that are not listed are fully supported by Envoy. */
const uses: { readonly [K in FeatureName]?: Uses } = {
  callerDeadline: { gateway: always },
  requestTimeout: { route: ({ attempts }) => attempts.hasRetries },
  learntTimeout: { route: ({ attempts }) => attempts.attemptTimeoutMs === 0 },
  idleTimeout: { route: ({ attempts }) => attempts.idleTimeoutMs < attempts.requestTimeoutMs },
  retryRules: { route: ({ attempts }) => attempts.hasRetries && hasOwnRules(attempts.policy) },
  retryBudget: {
    route: ({ attempts }) => attempts.hasRetries && attemptSettings(attempts).budgetRatio !== undefined,
  },
  hedge: { route: ({ attempts }) => attempts.hasHedge },
  circuitBreaker: { route: ({ attempts }) => attempts.circuitBreaker !== null },
  policyBreaker: {
    route: ({ attempts }) => attempts.circuitBreaker === null && Boolean(attempts.policy.breaker),
  },
  forcedBreaker: {
    route: ({ attempts }) => attempts.circuitBreaker !== null || Boolean(attempts.policy.breaker),
  },
  outlierEjection: {
    upstream: ({ outlierEjection, instances }) => outlierEjection !== null && instances.length > 1,
  },
  healthCheck: { upstream: ({ healthCheck }) => healthCheck !== null },
  panic: {
    upstream: ({ healthCheck, attempts }) => healthCheck !== null || attempts.circuitBreaker !== null,
  },
  rateLimiting: both(({ protections }) => protections.rateLimiting !== null),
  sharedRateLimits: { gateway: ({ stores }) => stores.rateLimits !== undefined },
  reportOnly: both(({ protections }) => protections.rateLimiting?.reportOnly === true),
  bulkhead: both(({ protections }) => protections.bulkhead !== null),
  upstreamBulkhead: {
    upstream: ({ name, protections }, { routes }) =>
      protections.bulkhead !== null && routes.some((each) => each.upstream === name && hasOwnCluster(each)),
  },
  shedding: both(({ protections }) => protections.shedding !== null),
  priority: { route: ({ priority }) => priority !== 'default' },
  idempotency: { route: ({ protections }) => protections.idempotency !== null },
  staleFallback: { route: ({ fallback }) => fallback?.staleMs !== undefined },
  staticFallback: { route: ({ fallback }) => fallback?.static !== undefined },
  routeFallback: { route: ({ fallback }) => fallback?.route !== undefined },
  bodyLimit: { route: ({ bodyBytesMax }) => bodyBytesMax < Infinity },
  connectionsPerClient: { gateway: always },
  forwardedHeader: { gateway: ({ listen }) => listen.trustedProxies.length > 0 },
  retryAdvice: { gateway: always },
  stories: { gateway: ({ storiesMax }) => storiesMax > 0 },
  accessLog: { gateway: ({ accessLog }) => accessLog !== false },
  serverTiming: { gateway: ({ serverTiming }) => serverTiming },
  tracing: { gateway: ({ tracing }) => tracing },
  keptState: { gateway: always },
};

function usesOf(feature: FeatureName, config: GatewayConfig): string[] {
  const { gateway, upstream, route } = uses[feature] ?? {};
  return [
    ...(gateway?.(config) ? ['gateway'] : []),
    ...(upstream ? config.upstreams.filter((each) => upstream(each, config)) : []).map(
      ({ name }) => `upstream ${name}`,
    ),
    ...(route ? config.routes.filter((each) => route(each, config)) : []).map(({ name }) => `route ${name}`),
  ];
}

function both(test: (each: Pick<RouteConfig, 'protections'>) => boolean): Uses {
  return { upstream: test, route: test };
}

function hasOwnRules(policy: RouteConfig['attempts']['policy']): boolean {
  const { retryOn, retryOnly, neverOn, backoff } = policy;
  const isOwnBackoff =
    typeof backoff === 'function' ||
    (typeof backoff === 'object' &&
      ((backoff.strategy !== undefined && backoff.strategy !== 'exponential') ||
        (backoff.jitter !== undefined && backoff.jitter !== 'full')));
  return isOwnBackoff || [retryOn, retryOnly, neverOn].some((each) => each !== undefined);
}

function missing(reason: string): Feature {
  return { missing: reason };
}

function approximated(reason: string): Feature {
  return { approximated: reason };
}
