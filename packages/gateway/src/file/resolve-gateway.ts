import type { SourceDocument } from '@holdfast/config';
import { OptionsError, type PolicySpec } from 'holdfast';
import { readTable, unknownField } from 'holdfast/fields';
import type {
  FallbackConfig,
  GatewayConfig,
  HeaderChanges,
  InstanceConfig,
  MatchConfig,
  OutlierEjectionConfig,
  Protections,
  RouteConfig,
  UpstreamConfig,
} from './gateway-config.ts';
import { gatewayFields, upstreamFields } from './gateway-file.ts';
import { type ReadRoute, type ReadUpstream, routesOf, upstreamOf } from './kubernetes.ts';
import { attemptsOf, partsNotRun, type ReadProtections } from './policy-of.ts';
import type { Problems, ReadFile } from './read-gateway.ts';
import { adminOf, listenOf } from './resolve-listeners.ts';

type Settings = ReadFile['settings'];

interface Placed<T> {
  readonly source: SourceDocument;
  readonly path: string;
  readonly settings: T;
}

interface Context {
  readonly problems: Problems;
  readonly policies: ReadonlyMap<string, PolicySpec>;
  readonly readText: (field: string, file: string) => string | undefined;
}

const instancesMax = 1000;

/**
 * Converts checked files to a configuration: resolves names, fills in defaults, and inherits blocks of
 * upstreams.
 */
export function resolveGateway(
  files: readonly ReadFile[],
  policies: ReadonlyMap<string, PolicySpec>,
  problems: Problems,
  readText: Context['readText'],
): GatewayConfig {
  const main = files[0]!;
  // If the file is a single service, it has none of these fields. So each field gets its default first.
  const settings: Settings = { ...readTable(gatewayFields, {}), ...main.settings };
  const context: Context = { problems, policies, readText };
  const defaults = settings.defaults ?? {};

  const upstreams = new Map<string, Placed<ReadUpstream>>();
  for (const [name, placed] of files.flatMap(upstreamsIn)) {
    if (upstreams.has(name)) problems.add(placed.source, placed.path, `an upstream ${name} exists already`);
    else if (!placed.settings) problems.add(placed.source, placed.path, 'expected instances or ports');
    else upstreams.set(name, placed as Placed<ReadUpstream>);
  }
  const placedRoutes = files.flatMap(routesIn);
  const listen = listenOf(settings, main.source, problems, readText);
  const resolved = new Map<string, { own: ReadUpstream; config: UpstreamConfig }>();
  for (const [name, placed] of upstreams) {
    const own = { ...withoutAbsent(defaults), ...withoutAbsent(placed.settings) } as ReadUpstream;
    const config = upstreamConfig(name, own, placed, context);
    if (config) resolved.set(name, { own, config });
  }
  const routes = placedRoutes.flatMap((placed): PlacedRoute[] => {
    const { upstream: name } = placed.settings;
    const upstream = resolved.get(name);
    if (!upstream) {
      if (!upstreams.has(name))
        problems.add(
          placed.source,
          at(placed.path, 'upstream'),
          `there is no upstream ${name}${meant(name, upstreams.keys())}`,
        );
      return [];
    }
    const { own, config } = upstream;
    const attempts = attemptsIn(placed, placed.settings, own, config.outlierEjection, context);
    return attempts ? [{ ...placed, config: routeConfig(placed.settings, own, attempts, settings) }] : [];
  });
  checkRoutes(routes, problems);
  return {
    files: files.map(({ source }) => source.file),
    listen,
    admin: adminOf(settings),
    workers: settings.workers ?? 1,
    zone: settings.zone,
    stores: { ledger: settings.stores?.ledger, rateLimits: settings.stores?.rateLimits },
    upstreams: [...resolved.values()].map(({ config }) => config),
    routes: routes.map(({ config }) => config),
    keptBodyBytes: settings.keptBody!,
    accessLog: settings.accessLog!,
    serverTiming: settings.serverTiming!,
    tracing: settings.tracing!,
    storiesMax: settings.stories!,
    shutdown: { delayMs: settings.shutdown?.delay ?? 0, drainMs: settings.shutdown?.drain ?? 30_000 },
  };
}

function upstreamsIn(file: ReadFile): [string, Placed<ReadUpstream | undefined>][] {
  const { source, settings, servicePaths } = file;
  return [
    ...Object.entries(settings.upstreams ?? {}).map(([name, each]): [string, Placed<ReadUpstream>] => [
      name,
      { source, path: `upstreams.${name}`, settings: each },
    ]),
    ...(settings.services ?? []).map((service, index): [string, Placed<ReadUpstream | undefined>] => [
      service.metadata.name,
      { source, path: at(servicePaths[index]!, 'spec'), settings: upstreamOf(service) },
    ]),
  ];
}

function routesIn({ source, settings, servicePaths }: ReadFile): Placed<ReadRoute>[] {
  return [
    ...(settings.routes ?? []).map((each, index) => ({ source, path: `routes[${index}]`, settings: each })),
    ...(settings.services ?? []).flatMap((service, index) =>
      routesOf(service).map((each) => ({ source, path: at(servicePaths[index]!, 'spec'), settings: each })),
    ),
  ];
}

/** Returns `undefined` if the settings have an error. The error is added to `problems`. */
function attemptsIn(
  placed: Placed<unknown>,
  own: ReadProtections,
  upstream: ReadProtections,
  outlierEjection: OutlierEjectionConfig | null,
  { problems, policies }: Context,
) {
  const complain = (message: string) => problems.add(placed.source, at(placed.path, 'retry'), message);
  const retry = own.retry !== undefined ? own.retry : upstream.retry;
  const document = typeof retry === 'string' ? policies.get(retry) : retry;
  if (typeof retry === 'string' && !document) {
    complain(`there is no policy ${retry}${meant(retry, policies.keys())}`);
    return undefined;
  }
  const notRun = partsNotRun.find((part) => document && Object.hasOwn(document, part));
  if (notRun !== undefined) {
    complain(`a gateway does not run the ${notRun} of a policy; the route can have a fallback`);
    return undefined;
  }
  try {
    return attemptsOf(own, upstream, outlierEjection, (name) => policies.get(name));
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error;
    complain(error.message);
    return undefined;
  }
}

function upstreamConfig(
  name: string,
  own: ReadUpstream,
  placed: Placed<unknown>,
  context: Context,
): UpstreamConfig | undefined {
  const { problems, readText } = context;
  const { healthCheck, outlierEjection, loadBalancing, tls } = own;
  const instances = own.instances.map(
    (each): InstanceConfig =>
      typeof each === 'string'
        ? { url: each, weight: 1, zone: undefined }
        : { url: each.url, weight: each.weight, zone: each.zone },
  );
  const complain = (field: string, message: string) =>
    problems.add(placed.source, at(placed.path, field), message);
  if (instances.length === 0 || instances.length > instancesMax)
    complain('instances', `expected 1 to ${instancesMax} instances, got ${instances.length}`);
  instances.forEach(({ url }, index) => {
    if (instances.findIndex((each) => each.url === url) !== index)
      complain(`instances[${index}]`, `${url} stands here twice; give it a weight instead`);
  });
  const file = (field: 'ca' | 'cert' | 'key') => {
    const given = tls?.[field];
    return given === undefined ? undefined : readText(at(placed.path, `tls.${field}`), given);
  };
  const ejection =
    outlierEjection === undefined
      ? readTable(upstreamFields, { instances: [], outlierEjection: true }).outlierEjection
      : outlierEjection;
  const ejected: OutlierEjectionConfig | null = ejection
    ? {
        consecutive: ejection.consecutive,
        ejectForMs: ejection.ejectFor,
        maxEjectForMs: Math.max(ejection.ejectFor, ejection.maxEjectFor),
      }
    : null;
  const attempts = attemptsIn(placed, {}, own, ejected, context);
  return (
    attempts && {
      name,
      instances,
      attempts,
      loadBalancing:
        typeof loadBalancing === 'object'
          ? loadBalancing
          : { strategy: loadBalancing ?? 'p2c', on: 'client' },
      healthCheck: healthCheck
        ? {
            path: healthCheck.path,
            intervalMs: healthCheck.interval,
            timeoutMs: healthCheck.timeout,
            unhealthyThreshold: healthCheck.unhealthyThreshold,
            healthyThreshold: healthCheck.healthyThreshold,
          }
        : null,
      outlierEjection: ejected,
      panicThreshold: own.panicThreshold ?? 0.5,
      slowStartMs: own.slowStart ?? 0,
      connectionsMax: own.connections ?? 128,
      http2: own.http2 ?? false,
      tls: {
        ca: file('ca'),
        cert: file('cert'),
        key: file('key'),
        servername: tls?.servername,
        insecureSkipVerify: tls?.insecureSkipVerify ?? false,
      },
      resolveEveryMs: own.resolveEvery ?? 30_000,
      protections: protectionsOf(own, undefined),
    }
  );
}

function routeConfig(
  route: ReadRoute,
  upstream: ReadProtections,
  attempts: RouteConfig['attempts'],
  settings: Settings,
): RouteConfig {
  const match = matchOf(route.match);
  return {
    name: route.name ?? nameOf(match),
    match,
    upstream: route.upstream,
    rewrite: route.rewrite,
    priority: route.priority ?? 'default',
    requestHeaders: changesOf(route.headers?.request),
    responseHeaders: changesOf(route.headers?.response),
    fallback: fallbackOf(route.fallback),
    websocket: route.websocket ?? true,
    bodyBytesMax: route.maxBody ?? settings.maxBody!,
    protections: protectionsOf(route, upstream),
    attempts,
  };
}

/**
 * Only `idempotency` is inherited from the upstream, because the key of a request must be checked only once.
 */
function protectionsOf(own: ReadProtections, upstream: ReadProtections | undefined): Protections {
  const { rateLimiting, bulkhead, shedding } = own;
  const idempotency = own.idempotency !== undefined ? own.idempotency : upstream?.idempotency;
  return {
    rateLimiting: rateLimiting
      ? { ...rateLimiting, burstSize: rateLimiting.burstSize ?? burstOf(rateLimiting.requestsPerSecond) }
      : null,
    bulkhead: bulkhead
      ? {
          maxConcurrentRequests: bulkhead.maxConcurrentRequests,
          maxQueuedRequests: bulkhead.maxQueuedRequests,
          queueTimeoutMs: bulkhead.queueTimeout,
        }
      : null,
    shedding: shedding
      ? {
          initial: shedding.initial,
          floor: shedding.floor,
          ceiling: shedding.ceiling,
          reserve: shedding.reserve,
          maxQueuedRequests: shedding.maxQueuedRequests,
          queueTimeoutMs: shedding.queueTimeout,
        }
      : null,
    idempotency: idempotency
      ? {
          scope: idempotency.scope,
          required: idempotency.required,
          methods: idempotency.methods,
          keepMs: idempotency.keep,
          waitMs: idempotency.wait,
          leaseMs: idempotency.lease,
          bodyBytesMax: idempotency.maxBody,
        }
      : null,
  };
}

/** Returns the default of `burstSize`. A fixed number would make a low `requestsPerSecond` meaningless. */
function burstOf(requestsPerSecond: number): number {
  return Math.ceil(2 * requestsPerSecond);
}

function matchOf(match: ReadRoute['match']): MatchConfig {
  if (typeof match === 'string') return { hosts: [], path: match, isExact: false, methods: [] };
  const { host = [], path, exact, methods = [] } = match;
  return { hosts: host, path: exact ?? path, isExact: exact !== undefined, methods };
}

function nameOf({ hosts, path, isExact, methods }: MatchConfig): string {
  return [methods.join(','), hosts.join(',') + path + (isExact ? '' : path.endsWith('/') ? '*' : '/*')]
    .filter((each) => each !== '')
    .join(' ');
}

function changesOf(
  changes: { set: Readonly<Record<string, string>>; remove: readonly string[] } | undefined,
): HeaderChanges {
  const set = Object.entries(changes?.set ?? {}).map(([name, value]) => [name.toLowerCase(), value]);
  return { set: Object.fromEntries(set), remove: changes?.remove ?? [] };
}

function fallbackOf(fallback: ReadRoute['fallback']): FallbackConfig | null {
  if (!fallback) return null;
  const { stale, route, static: fixed } = fallback;
  return {
    staleMs: stale,
    route,
    static: fixed && { status: fixed.status, headers: fixed.headers, body: fixed.body ?? '' },
  };
}

interface PlacedRoute extends Placed<ReadRoute> {
  readonly config: RouteConfig;
}

/** Finds duplicate names, routes for the same requests, and circular fallbacks. */
function checkRoutes(routes: readonly PlacedRoute[], problems: Problems): void {
  const seen = new Map<string, string>();
  const named = new Map<string, RouteConfig>();
  for (const { source, path, config } of routes) {
    const { name, match } = config;
    if (named.has(name)) problems.add(source, at(path, 'name'), `a route ${name} exists already`);
    named.set(name, config);
    for (const host of match.hosts.length > 0 ? match.hosts : ['*'])
      for (const method of match.methods.length > 0 ? match.methods : ['*']) {
        const key = `${method} ${host} ${match.path} ${match.isExact}`;
        const other = seen.get(key);
        if (other !== undefined)
          problems.add(source, at(path, 'match'), `the route ${other} matches the same requests`);
        seen.set(key, name);
      }
  }
  for (const { source, path, config } of routes) {
    const visited = new Set([config.name]);
    for (let next = config.fallback?.route; next !== undefined; ) {
      const found = named.get(next);
      const isCircle = visited.has(next);
      if (!found)
        problems.add(
          source,
          at(path, 'fallback.route'),
          `there is no route ${next}${meant(next, named.keys())}`,
        );
      else if (isCircle)
        problems.add(source, at(path, 'fallback.route'), 'the fallbacks lead back to this route');
      if (!found || isCircle) break;
      visited.add(next);
      next = found.fallback?.route;
    }
  }
}

function meant(given: string, known: Iterable<string>): string {
  const names = Object.fromEntries([...known].map((name) => [name, true]));
  const nearest = unknownField(names, given, given).meant;
  return nearest === undefined ? '' : `; did you mean ${nearest}?`;
}

function withoutAbsent(given: object): object {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function at(path: string, field: string): string {
  return path === '' ? field : `${path}.${field}`;
}
