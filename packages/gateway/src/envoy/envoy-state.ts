import type { InstanceState, RouteState, UpstreamState, WorkerState } from '../admin/worker-state.ts';
import type { GatewayConfig, UpstreamConfig } from '../file/gateway-config.ts';
import { durationBounds } from '../route/route-counts.ts';
import type { ClusterStatus, Durations, EnvoyAdmin, HostStatus } from './envoy-admin.ts';
import { type Draining, hostOf, portOf, upstreamOfCluster } from './envoy-clusters.ts';
import { statPrefix } from './envoy-listener.ts';
import { statPrefixOf } from './envoy-routes.ts';

export interface EnvoyFacts {
  readonly config: GatewayConfig;
  readonly draining: Draining;
  readonly pid: number;
  readonly startedAt: number;
  readonly isDraining: boolean;
}

type Numbers = ReadonlyMap<string, number | string>;

/** Numbers that Envoy does not report are NaN, which becomes null in JSON. */
export async function envoyState(admin: EnvoyAdmin, facts: EnvoyFacts): Promise<WorkerState> {
  const { config, draining, pid, startedAt, isDraining } = facts;
  const [numbers, durations, clusters] = await Promise.all([
    admin.stats(`^(vhost\\.|http\\.${statPrefix}\\.|cluster\\.|limits\\.)`),
    admin.durations('^vhost\\..*upstream_rq_time$'),
    admin.clusters(),
  ]);
  const routes = config.routes.map((route) =>
    routeState(route.name, route.upstream, statPrefixOf(config, route), numbers, durations),
  );
  return {
    pid,
    startedAt,
    isDraining,
    inFlight: numberOf(numbers, `http.${statPrefix}.downstream_rq_active`),
    routes,
    unmatched: unmatched(numbers, routes),
    upstreams: config.upstreams.map((upstream) => upstreamState(upstream, clusters, numbers, draining)),
    protections: [
      {
        name: 'rate limits',
        kind: 'rateLimit',
        refused: numberOf(numbers, 'limits.http_local_rate_limit.enforced'),
        inFlight: null,
        queued: null,
      },
      ...clusters.map(({ name }) => ({
        name: `upstream ${name} bulkhead`,
        kind: 'bulkhead',
        refused: numberOf(numbers, `cluster.${name}.upstream_rq_pending_overflow`),
        inFlight: numberOf(numbers, `cluster.${name}.upstream_rq_active`),
        queued: numberOf(numbers, `cluster.${name}.upstream_rq_pending_active`),
      })),
    ],
    accessLogDropped: 0,
  };
}

function routeState(
  name: string,
  upstream: string,
  prefix: string,
  numbers: Numbers,
  durations: ReadonlyMap<string, Durations>,
): RouteState {
  // Adds up a figure of all virtual hosts. For each route, Envoy's statistics have one entry per virtual
  // host.
  const all = (figure: string) => {
    const suffix = `.route.${prefix}.${figure}`;
    let sum = 0;
    for (const [key, value] of numbers)
      if (key.startsWith('vhost.') && key.endsWith(suffix)) sum += Number(value);
    return sum;
  };
  const counts = durationBounds.map(() => 0).concat(0);
  let durationSum = 0;
  for (const [key, { totals }] of durations) {
    if (!key.endsWith(`.route.${prefix}.upstream_rq_time`)) continue;
    for (const { lower_bound: from, width, count } of totals) {
      const index = durationBounds.findIndex((bound) => from < bound * 1000);
      counts[index < 0 ? durationBounds.length : index]! += count;
      durationSum += ((from + width / 2) / 1000) * count;
    }
  }
  const statuses = Object.fromEntries([1, 2, 3, 4, 5].map((k) => [`${k}xx`, all(`upstream_rq_${k}xx`)]));
  return {
    name,
    upstream,
    requests: all('upstream_rq_completed'),
    inFlight: Number.NaN,
    statuses: { ...statuses, aborted: 0 },
    retries: all('upstream_rq_retry'),
    refused: Number.NaN,
    fallbacks: 0,
    bytes: Number.NaN,
    durationSum,
    durations: counts,
  };
}

function unmatched(numbers: Numbers, routes: readonly RouteState[]): RouteState {
  const statuses = Object.fromEntries(
    [1, 2, 3, 4, 5].map((k) => {
      const all = numberOf(numbers, `http.${statPrefix}.downstream_rq_${k}xx`);
      const routed = routes.reduce((sum, each) => sum + (each.statuses[`${k}xx`] ?? 0), 0);
      return [`${k}xx`, Math.max(0, all - routed)];
    }),
  );
  return {
    name: '',
    upstream: '',
    requests: Object.values(statuses).reduce((sum, count) => sum + count, 0),
    inFlight: 0,
    statuses: { ...statuses, aborted: 0 },
    retries: 0,
    refused: 0,
    fallbacks: 0,
    bytes: 0,
    durationSum: 0,
    durations: durationBounds.map(() => 0).concat(0),
  };
}

function upstreamState(
  upstream: UpstreamConfig,
  clusters: readonly ClusterStatus[],
  numbers: Numbers,
  draining: Draining,
): UpstreamState {
  const own = clusters.filter(({ name }) => upstreamOfCluster(name) === upstream.name);
  const hosts = own.flatMap(({ host_statuses: found = [] }) => found);
  return {
    name: upstream.name,
    insecure: upstream.tls.insecureSkipVerify,
    policies: own.map(({ name }) => {
      const retries = numberOf(numbers, `cluster.${name}.upstream_rq_retry`);
      const attempts = numberOf(numbers, `cluster.${name}.upstream_rq_total`);
      return {
        name,
        operations: Math.max(0, attempts - retries),
        attempts,
        tokens: null,
        stops: { budget_exhausted: numberOf(numbers, `cluster.${name}.upstream_rq_retry_overflow`) },
        targets: [],
      };
    }),
    instances: upstream.instances.map(({ url, zone, weight }): InstanceState => {
      const found = hosts.filter((host) => isAt(host, url));
      const isEjected = found.some(({ health_status: health }) => health.failed_outlier_check);
      return {
        name: url,
        zone: zone ?? null,
        weight,
        isHealthy: !found.some(({ health_status: health }) => health.failed_active_health_check),
        isDraining: draining.has(`${upstream.name} ${url}`),
        isEjected,
        inFlight: found.reduce((sum, host) => sum + hostNumber(host, 'rq_active'), 0),
        // Envoy has no breakers. An ejected instance counts as one with an open breaker.
        breaker: upstream.attempts.circuitBreaker ? (isEjected ? 'open' : 'closed') : null,
        forced: null,
        lastCheckError: found.some(({ health_status: health }) => health.active_hc_timeout)
          ? 'timeout'
          : null,
      };
    }),
  };
}

function isAt({ address, hostname }: HostStatus, url: string): boolean {
  const { address: host, port_value: port } = address.socket_address;
  return port === portOf(url) && (host === hostOf(url) || hostname === hostOf(url));
}

function hostNumber({ stats }: HostStatus, name: string): number {
  return Number(stats.find((each) => each.name === name)?.value ?? 0);
}

function numberOf(numbers: Numbers, name: string): number {
  return Number(numbers.get(name) ?? 0);
}
