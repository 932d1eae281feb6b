import type { GatewayConfig, RouteConfig, UpstreamConfig } from '../file/gateway-config.ts';
import { attemptSettings } from './attempt-settings.ts';
import { hasOwnCluster } from './envoy-clusters.ts';

/** `true`: Envoy does it as the Node data plane does. Otherwise it is missing or approximated, and says why and how. */
export type Feature = true | { readonly missing: string } | { readonly approximated: string };

/** What a data plane does of a gateway file, by name. */
export interface Features {
  /** Routes by host, path and method, rewrites, headers. */
  readonly routing: Feature;
  readonly weights: Feature;
  readonly zones: Feature;
  /** The caller's own deadline (`Holdfast: patience`, `X-Request-Timeout-Ms`) shortens the timeout. */
  readonly callerDeadline: Feature;
  /** `timeouts.request` covers all attempts together. */
  readonly requestTimeout: Feature;
  /** Attempt timeouts are learnt. */
  readonly learntTimeout: Feature;
  readonly idleTimeout: Feature;
  /** Retries prefer another instance; POST and PATCH only with a key, or if nothing was sent. */
  readonly retries: Feature;
  /** `retryOn`, `retryOnly`, `neverOn` and waits that are not exponential. */
  readonly retryRules: Feature;
  /** The budget of retries is fed by successes, and kept for each upstream. */
  readonly retryBudget: Feature;
  readonly hedge: Feature;
  readonly circuitBreaker: Feature;
  /** A breaker that the policy under `retry` has, instead of `circuitBreaker`. */
  readonly policyBreaker: Feature;
  /** Operators keep a breaker open or closed. */
  readonly forcedBreaker: Feature;
  readonly outlierEjection: Feature;
  readonly healthCheck: Feature;
  /** Below `panicThreshold` health is ignored. */
  readonly panic: Feature;
  readonly slowStart: Feature;
  readonly rateLimiting: Feature;
  /** Rate limits that several gateways share through a store. */
  readonly sharedRateLimits: Feature;
  readonly reportOnly: Feature;
  readonly bulkhead: Feature;
  /** Protections of an upstream count all its routes together, also those with their own. */
  readonly upstreamBulkhead: Feature;
  readonly shedding: Feature;
  readonly priority: Feature;
  readonly idempotency: Feature;
  readonly staleFallback: Feature;
  readonly staticFallback: Feature;
  readonly routeFallback: Feature;
  /** Longer bodies than `maxBody` are refused. */
  readonly bodyLimit: Feature;
  readonly connectionsPerClient: Feature;
  /** `Forwarded` (RFC 7239) of trusted proxies gets another hop. */
  readonly forwardedHeader: Feature;
  /** The `Holdfast` header of responses says whether a request may be repeated. */
  readonly retryAdvice: Feature;
  readonly stories: Feature;
  readonly accessLog: Feature;
  readonly serverTiming: Feature;
  readonly tracing: Feature;
  readonly websocket: Feature;
  readonly streaming: Feature;
  readonly reload: Feature;
  /** Breakers, ejections and limits are kept when the file changes. */
  readonly keptState: Feature;
  readonly drain: Feature;
}

/** The name of something that a data plane may lack. */
export type FeatureName = keyof Features;

/** The Node data plane has them all: it defines them. */
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

/** What Envoy 1.39 does. */
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

/** Something of a file that Envoy does not do as the file says. */
export interface EnvoyLoss {
  readonly feature: FeatureName;
  readonly kind: 'missing' | 'approximated';
  readonly reason: string;
  /** Where the file uses it: `upstream orders`, `route /orders/*`, `gateway`. */
  readonly where: readonly string[];
}

/** What is lost if Envoy runs this file: the missing first. Empty: nothing. */
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

/** Which part of a file uses a feature. What is not here is done in full. */
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
