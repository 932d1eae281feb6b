import { isIP } from 'node:net';
import type {
  AttemptsConfig,
  BulkheadConfig,
  GatewayConfig,
  InstanceConfig,
  RouteConfig,
  UpstreamConfig,
} from '../file/gateway-config.ts';
import { attemptSettings } from './attempt-settings.ts';
import { extension, present, type Resource, seconds, socketAddress, typed } from './resource.ts';

const systemAuthorities = '/etc/ssl/certs/ca-certificates.crt';

/**
 * Idle connections are closed after this time (ms). Most servers close them later, so no request meets a
 * closing connection.
 */
const idleMs = 4_000;

/** Instances that get no new requests, each as `<upstream> <url>`. */
export type Draining = ReadonlySet<string>;

/** If every instance is draining, there is none left, and Envoy answers with 503. */
function servingInstances(
  { name, instances }: UpstreamConfig,
  draining: Draining,
): readonly InstanceConfig[] {
  return instances.filter(({ url }) => !draining.has(`${name} ${url}`));
}

export function clusterOf(route: RouteConfig): string {
  return hasOwnCluster(route) ? `${route.upstream}|${route.name}` : route.upstream;
}

export function upstreamOfCluster(cluster: string): string {
  return cluster.split('|', 1)[0]!;
}

/**
 * Envoy counts requests, breakers and retries per cluster. So a route with own settings for these needs its
 * own cluster.
 */
export function hasOwnCluster({ protections, attempts }: RouteConfig): boolean {
  return protections.bulkhead !== null || attempts.hasOwnBreakers || attempts.isOwn;
}

export function envoyClusters(config: GatewayConfig, draining: Draining): Resource[] {
  const own = config.routes.filter(hasOwnCluster);
  return [
    ...config.upstreams.map((upstream) =>
      cluster(upstream.name, upstream, upstream.attempts, upstream.protections.bulkhead, config, draining),
    ),
    ...own.map((route) => {
      const upstream = config.upstreams.find(({ name }) => name === route.upstream)!;
      const bulkhead = narrower(route.protections.bulkhead, upstream.protections.bulkhead);
      return cluster(clusterOf(route), upstream, route.attempts, bulkhead, config, draining);
    }),
  ];
}

function cluster(
  name: string,
  upstream: UpstreamConfig,
  attempts: AttemptsConfig,
  bulkhead: BulkheadConfig | null,
  { zone }: GatewayConfig,
  draining: Draining,
): Resource {
  const { healthCheck, loadBalancing } = upstream;
  const instances = servingInstances(upstream, draining);
  const isStatic = instances.every(({ url }) => isIP(hostOf(url)) !== 0);
  const isSecure = upstream.instances.some(({ url }) => url.startsWith('https:'));
  return present({
    '@type': 'type.googleapis.com/envoy.config.cluster.v3.Cluster',
    name,
    ...(isStatic ? { type: 'STATIC' } : { cluster_type: resolving(upstream) }),
    connect_timeout: seconds(attempts.connectTimeoutMs),
    ...balancing(upstream),
    common_lb_config: {
      healthy_panic_threshold: { value: panicPercent(upstream, attempts) },
      // Apply each change of weights or health at once.
      update_merge_window: '0s',
    },
    load_assignment: assignment(name, instances, upstream.panicThreshold, zone),
    // Remove an instance at once, even if its health checks still pass.
    ignore_health_on_host_removal: true,
    circuit_breakers: {
      thresholds: [thresholds(upstream, attempts, bulkhead)],
    },
    outlier_detection: outlierDetection(upstream, attempts),
    health_checks: healthCheck ? [checks(healthCheck)] : undefined,
    transport_socket: isSecure ? secureTransport(upstream) : undefined,
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': protocolOptions(upstream, isSecure),
    },
    ...(loadBalancing.strategy === 'hash' && { ring_hash_lb_config: { minimum_ring_size: 1024 } }),
  });
}

function resolving({ resolveEveryMs }: UpstreamConfig): Resource {
  return extension('envoy.clusters.dns', 'clusters.dns.v3.DnsCluster', {
    all_addresses_in_single_endpoint: false,
    dns_lookup_family: 'ALL',
    dns_refresh_rate: seconds(Math.min(resolveEveryMs, 86_400_000)),
    respect_dns_ttl: false,
  });
}

function balancing({ loadBalancing, slowStartMs }: UpstreamConfig): Resource {
  const slowStart =
    slowStartMs > 0 ? { slow_start_config: { slow_start_window: seconds(slowStartMs) } } : undefined;
  switch (loadBalancing.strategy) {
    case 'p2c':
      return { lb_policy: 'LEAST_REQUEST', least_request_lb_config: { choice_count: 2, ...slowStart } };
    case 'roundRobin':
      return { lb_policy: 'ROUND_ROBIN', ...(slowStart && { round_robin_lb_config: slowStart }) };
    case 'hash':
      return { lb_policy: 'RING_HASH' };
  }
}

/**
 * Below this percentage of healthy instances, Envoy ignores health (a panic) and also calls ejected
 * instances. With a breaker and no health check, the percentage is 0, so that there is no panic.
 */
function panicPercent({ healthCheck, panicThreshold }: UpstreamConfig, attempts: AttemptsConfig): number {
  return attempts.circuitBreaker && !healthCheck ? 0 : Math.round(panicThreshold * 100);
}

/**
 * Instances in the gateway's own zone come first. Other instances get requests if too few of the local ones
 * are healthy.
 */
function assignment(
  name: string,
  instances: readonly InstanceConfig[],
  panicThreshold: number,
  zone: string | undefined,
): Resource {
  const zones = [...new Set(instances.map((each) => each.zone))];
  const hasLocal = zone !== undefined && zones.includes(zone);
  const endpoints = zones.map((each) =>
    present({
      locality: each === undefined ? undefined : { zone: each },
      priority: hasLocal && each !== zone ? 1 : 0,
      load_balancing_weight: sum(instances.filter((instance) => instance.zone === each)),
      lb_endpoints: instances.filter((instance) => instance.zone === each).map(endpoint),
    }),
  );
  return {
    cluster_name: name,
    endpoints,
    ...(hasLocal && {
      policy: { overprovisioning_factor: Math.round(100 / Math.max(panicThreshold, 0.01)) },
    }),
  };
}

function endpoint({ url, weight }: InstanceConfig): Resource {
  return {
    load_balancing_weight: weight,
    endpoint: { hostname: hostOf(url), address: socketAddress(hostOf(url), portOf(url)) },
  };
}

/**
 * With HTTP/1.1, each connection has one request at a time. So the limit of requests also limits connections.
 */
function thresholds(
  { instances, connectionsMax }: UpstreamConfig,
  attempts: AttemptsConfig,
  bulkhead: BulkheadConfig | null,
): Resource {
  const connections = connectionsMax * instances.length;
  const { budgetRatio } = attemptSettings(attempts);
  return present({
    max_connections: bulkhead ? Math.min(connections, bulkhead.maxConcurrentRequests) : connections,
    // A request also counts as pending while its connection is opened.
    max_pending_requests: bulkhead ? bulkhead.maxQueuedRequests + bulkhead.maxConcurrentRequests : 1024,
    max_requests: bulkhead ? bulkhead.maxConcurrentRequests : 1_000_000,
    max_retries: 1_000_000,
    retry_budget:
      budgetRatio === undefined
        ? undefined
        : { budget_percent: { value: budgetRatio * 100 }, min_retry_concurrency: 3 },
    track_remaining: true,
  });
}

/**
 * Envoy has one mechanism for `circuitBreaker` and `outlierEjection`. If both are set, `circuitBreaker` is
 * used.
 */
function outlierDetection(
  { outlierEjection }: UpstreamConfig,
  { circuitBreaker }: AttemptsConfig,
): Resource | undefined {
  if (circuitBreaker) {
    const { failureThreshold, timeoutMs, failureRatio, minimumRequests } = circuitBreaker;
    return {
      ...ejection(failureThreshold, timeoutMs, timeoutMs),
      max_ejection_percent: 100,
      failure_percentage_threshold: Math.round(failureRatio * 100),
      enforcing_failure_percentage: 100,
      failure_percentage_minimum_hosts: 1,
      failure_percentage_request_volume: minimumRequests,
    };
  }
  if (!outlierEjection) return undefined;
  const { consecutive, ejectForMs, maxEjectForMs } = outlierEjection;
  return { ...ejection(consecutive, ejectForMs, maxEjectForMs), max_ejection_percent: 50 };
}

function ejection(consecutive: number, forMs: number, maxMs: number): Resource {
  return {
    consecutive_5xx: consecutive,
    consecutive_gateway_failure: consecutive,
    enforcing_consecutive_gateway_failure: 100,
    enforcing_success_rate: 0,
    base_ejection_time: seconds(forMs),
    max_ejection_time: seconds(maxMs),
    interval: seconds(Math.min(10_000, Math.max(100, forMs / 4))),
    // A successful health check must not end an ejection early.
    successful_active_health_check_uneject_host: false,
  };
}

function checks(check: NonNullable<UpstreamConfig['healthCheck']>): Resource {
  return {
    interval: seconds(check.intervalMs),
    no_traffic_interval: seconds(check.intervalMs),
    timeout: seconds(check.timeoutMs),
    interval_jitter_percent: 20,
    unhealthy_threshold: check.unhealthyThreshold,
    healthy_threshold: check.healthyThreshold,
    http_health_check: {
      path: check.path,
      expected_statuses: [{ start: 200, end: 400 }],
      // Without this list, a single bad status makes an instance unhealthy, whatever the threshold is.
      retriable_statuses: [
        { start: 100, end: 200 },
        { start: 400, end: 600 },
      ],
    },
  };
}

function secureTransport({ tls, http2 }: UpstreamConfig): Resource {
  const { ca, cert, key, servername, insecureSkipVerify } = tls;
  const validation = insecureSkipVerify
    ? undefined
    : { trusted_ca: ca === undefined ? { filename: systemAuthorities } : { inline_string: ca } };
  return extension('tls', 'transport_sockets.tls.v3.UpstreamTlsContext', {
    ...(servername === undefined ? { auto_host_sni: true } : { sni: servername }),
    ...(validation && { auto_sni_san_validation: true }),
    common_tls_context: present({
      validation_context: validation,
      alpn_protocols: http2 ? ['h2', 'http/1.1'] : undefined,
      tls_certificates:
        cert === undefined || key === undefined
          ? undefined
          : [{ certificate_chain: { inline_string: cert }, private_key: { inline_string: key } }],
    }),
  });
}

function protocolOptions({ http2 }: UpstreamConfig, isSecure: boolean): Resource {
  const http1 = { enable_trailers: true };
  const protocols =
    http2 && isSecure
      ? { auto_config: { http_protocol_options: http1, http2_protocol_options: {} } }
      : {
          explicit_http_config: http2 ? { http2_protocol_options: {} } : { http_protocol_options: http1 },
        };
  return typed('upstreams.http.v3.HttpProtocolOptions', {
    common_http_protocol_options: { idle_timeout: seconds(idleMs) },
    ...protocols,
  });
}

function narrower(a: BulkheadConfig | null, b: BulkheadConfig | null): BulkheadConfig | null {
  if (!a || !b) return a ?? b;
  return a.maxConcurrentRequests <= b.maxConcurrentRequests ? a : b;
}

function sum(instances: readonly InstanceConfig[]): number {
  return instances.reduce((total, { weight }) => total + weight, 0);
}

export function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '');
}

export function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
}
