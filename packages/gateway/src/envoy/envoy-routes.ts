import type { GatewayConfig, HeaderChanges, RouteConfig, UpstreamConfig } from '../file/gateway-config.ts';
import { attemptSettings } from './attempt-settings.ts';
import { clusterOf } from './envoy-clusters.ts';
import { routeLimits } from './envoy-limits.ts';
import { extension, present, type Resource, seconds } from './resource.ts';

export const routesName = 'gateway';

/**
 * Requests with these methods may be repeated. With an idempotency key, those with other methods may be, too.
 */
const idempotentMethods = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'];

/** The statuses that `holdfast` classifies as transient or throttled. */
const retriedStatuses = [
  408,
  425,
  429,
  500,
  502,
  503,
  504,
  ...Array.from({ length: 80 }, (_, index) => 520 + index),
];

/** These failures happen before the request was sent. So a retry is safe for any method. */
const retriedUnsent = 'connect-failure,refused-stream,reset-before-request';
const retriedAlways = `${retriedUnsent},reset,retriable-status-codes`;

/**
 * Paths that different servers read in different ways. The Node data plane rejects them as well, in
 * `RequestHead`.
 */
const ambiguousPath = '(?i)(//.*|.*(\\\\|/\\.{1,2}(/.*|$)|%(2e|2f|5c|00)).*|.*[^!-~].*)';

const lengthMax = String(2n ** 63n - 1n);

/** Envoy takes the first route that matches, so the most specific route comes first. */
export function envoyRoutes(config: GatewayConfig): Resource {
  const hosts = [...new Set(config.routes.flatMap(({ match }) => match.hosts))];
  return {
    '@type': 'type.googleapis.com/envoy.config.route.v3.RouteConfiguration',
    name: routesName,
    ignore_port_in_host_matching: true,
    // Adds the client's address. For clients on loopback, Envoy itself would add this machine's own address.
    request_headers_to_add: [
      {
        header: { key: 'x-forwarded-for', value: '%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%' },
        append_action: 'APPEND_IF_EXISTS_OR_ADD',
      },
    ],
    // Envoy looks only into the most specific virtual host. So each one has all routes that can match its
    // domain.
    virtual_hosts: [...hosts, '*'].map((host) => ({
      name: host,
      domains: [host],
      routes: [
        { name: 'ambiguous path', match: { safe_regex: { regex: ambiguousPath } }, ...refuses(400) },
        ...tiers(host, config.routes)
          .flatMap((routes) => inOrder(routes))
          .flatMap((r) => entries(r, config)),
        ...tiers(host, config.routes)
          .flat()
          .filter(({ match }) => match.methods.length > 0)
          .map((r) => ({ name: 'no such method', match: pathMatch(r), ...refuses(405) })),
        { name: 'no route', match: { prefix: '/' }, ...refuses(404) },
      ],
    })),
  };
}

export function statPrefixOf(config: GatewayConfig, route: RouteConfig): string {
  return `route_${config.routes.indexOf(route)}`;
}

/** Returns the routes that can match a host, in groups. The group with the most specific host is first. */
function tiers(host: string, routes: readonly RouteConfig[]): RouteConfig[][] {
  const name = host.startsWith('*.') ? host.slice(1) : host;
  const suffixes = [...new Set(routes.flatMap(({ match }) => match.hosts))]
    .filter((each) => each.startsWith('*.') && each !== host && name.endsWith(each.slice(1)))
    .sort((a, b) => b.length - a.length);
  const named = host === '*' ? [] : [host, ...suffixes];
  return [
    ...named.map((each) => routes.filter(({ match }) => match.hosts.includes(each))),
    routes.filter(({ match }) => match.hosts.length === 0),
  ];
}

/** Exact paths come first, then longer prefixes, then routes with methods. */
function inOrder(routes: readonly RouteConfig[]): RouteConfig[] {
  return routes.toSorted(
    (a, b) =>
      Number(b.match.isExact) - Number(a.match.isExact) ||
      b.match.path.length - a.match.path.length ||
      Number(b.match.methods.length > 0) - Number(a.match.methods.length > 0),
  );
}

/**
 * One route becomes several Envoy routes, because long bodies and repeatable requests need their own
 * settings.
 */
function entries(route: RouteConfig, config: GatewayConfig): Resource[] {
  const { bodyBytesMax, attempts } = route;
  const match = routeMatch(route);
  const tooLong = {
    name: `${route.name} (too long)`,
    match: withHeaders(match, {
      name: 'content-length',
      range_match: { start: String(bodyBytesMax + 1), end: lengthMax },
    }),
    ...refuses(413),
  };
  const action = (retryOn: string | undefined) => ({
    stat_prefix: statPrefixOf(config, route),
    ...routeAction(route, config, retryOn),
  });
  return [
    ...(bodyBytesMax < Infinity ? [tooLong] : []),
    ...(attempts.hasRetries
      ? [
          {
            name: route.name,
            match: withHeaders(match, methodMatch(idempotentMethods)),
            ...action(retriedAlways),
          },
          {
            name: `${route.name} (with a key)`,
            match: withHeaders(match, { name: 'idempotency-key', present_match: true }),
            ...action(retriedAlways),
          },
          { name: `${route.name} (once)`, match, ...action(retriedUnsent) },
        ]
      : [{ name: route.name, match, ...action(undefined) }]),
  ];
}

function routeAction(route: RouteConfig, config: GatewayConfig, retryOn: string | undefined): Resource {
  const { attempts, requestHeaders, responseHeaders, websocket } = route;
  const upstream = config.upstreams.find(({ name }) => name === route.upstream)!;
  const { host, ...set } = requestHeaders.set;
  return present({
    ...headerFields('request', { ...requestHeaders, set }),
    ...headerFields('response', responseHeaders, config.serverTiming ? serverTiming : []),
    ...(config.keptBodyBytes < Infinity && { request_body_buffer_limit: String(config.keptBodyBytes) }),
    route: present({
      cluster: clusterOf(route),
      ...rewrite(route),
      host_rewrite_literal: host,
      ...(host !== undefined && { append_x_forwarded_host: true }),
      // A timeout for the whole response would cut off streams. Each attempt has a timeout until its response
      // begins.
      timeout: '0s',
      idle_timeout: seconds(attempts.idleTimeoutMs < Infinity ? attempts.idleTimeoutMs : 0),
      retry_policy: retryPolicy(route, retryOn),
      hedge_policy:
        attempts.hasHedge && attemptSettings(attempts).hedgeAfterMs !== undefined && retryOn === retriedAlways
          ? { hedge_on_per_try_timeout: true }
          : undefined,
      hash_policy: hashPolicy(upstream),
      rate_limits: routeLimits(route, upstream),
      upgrade_configs: [{ upgrade_type: 'websocket', enabled: websocket }],
    }),
  });
}

function retryPolicy({ attempts }: RouteConfig, retryOn: string | undefined): Resource {
  const settings = attemptSettings(attempts);
  const { hedgeAfterMs, attemptTimeoutMs } = settings;
  const limit = retryOn === retriedAlways ? (hedgeAfterMs ?? attemptTimeoutMs) : attemptTimeoutMs;
  return present({
    retry_on: retryOn,
    num_retries: retryOn === undefined ? 0 : settings.attempts - 1,
    per_try_timeout: limit < Infinity ? seconds(limit) : undefined,
    ...(retryOn !== undefined && {
      retriable_status_codes: retryOn === retriedAlways ? retriedStatuses : undefined,
      retry_back_off: {
        base_interval: seconds(settings.backoffBaseMs),
        max_interval: seconds(settings.backoffCapMs),
      },
      ...(settings.hintCapMs > 0 && {
        rate_limited_retry_back_off: {
          reset_headers: [{ name: 'retry-after', format: 'SECONDS' }],
          max_interval: seconds(settings.hintCapMs),
        },
      }),
      retry_host_predicate: [extension('previous', 'retry.host.previous_hosts.v3.PreviousHostsPredicate')],
      host_selection_retry_max_attempts: '10',
    }),
  });
}

function routeMatch(route: RouteConfig): Resource {
  const match = pathMatch(route);
  const { methods } = route.match;
  return methods.length === 0 ? match : withHeaders(match, methodMatch(methods));
}

function pathMatch({ match: { path, isExact } }: RouteConfig): Resource {
  if (isExact) return { path };
  const prefix = path.replace(/\/$/, '');
  return prefix === '' ? { prefix: '/' } : { path_separated_prefix: prefix };
}

function methodMatch(methods: readonly string[]): Resource {
  return { name: ':method', string_match: { safe_regex: { regex: methods.join('|') } } };
}

function withHeaders(match: Resource, header: Resource): Resource {
  return { ...match, headers: [...((match.headers as Resource[] | undefined) ?? []), header] };
}

function rewrite({ rewrite: to, match }: RouteConfig): Resource {
  if (to === undefined) return {};
  const from = match.path.replace(/\/$/, '').replace(/[.*+?^${}()|[\]]/g, '\\$&');
  const base = to.replace(/\/$/, '').replaceAll('\\', '\\\\');
  return {
    regex_rewrite:
      base === ''
        ? { pattern: { regex: `^${from}/?` }, substitution: '/' }
        : { pattern: { regex: `^${from}` }, substitution: base },
  };
}

function hashPolicy({ loadBalancing: { strategy, on } }: UpstreamConfig): Resource[] | undefined {
  if (strategy !== 'hash') return undefined;
  const client = { connection_properties: { source_ip: true } };
  if (on === 'client') return [client];
  const name = on === 'path' ? ':path' : on.slice(7);
  // If the header is missing, Envoy uses the next entry of the list.
  return [{ header: { header_name: name }, terminal: true }, client];
}

const serverTiming = [['server-timing', 'upstream;dur=%RESPONSE_DURATION%']] as const;

function headerFields(
  which: 'request' | 'response',
  { set, remove }: HeaderChanges,
  more: readonly (readonly [string, string])[] = [],
): Resource {
  const escaped = Object.entries(set).map(([key, value]) => [key, value.replaceAll('%', '%%')] as const);
  const added = [...escaped, ...more].map(([key, value]) => ({
    header: { key, value },
    append_action: 'OVERWRITE_IF_EXISTS_OR_ADD',
    keep_empty_value: true,
  }));
  return present({
    [`${which}_headers_to_add`]: added.length > 0 ? added : undefined,
    [`${which}_headers_to_remove`]: remove.length > 0 ? remove : undefined,
  });
}

const titles: Readonly<Record<number, string>> = {
  400: 'The request is not well-formed.',
  404: 'No route leads from here.',
  405: 'No route takes this method here.',
  413: 'The body is longer than this route takes.',
};

function refuses(status: number): Resource {
  return { direct_response: { status, body: { inline_string: titles[status] } } };
}
