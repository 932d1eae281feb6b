import { type PolicySpec, policy } from 'holdfast';
import { explain, type WorstLoad, type WorstTime } from 'holdfast/explain';
import type { GatewayConfig, Protections, RouteConfig, UpstreamConfig } from '../file/gateway-config.ts';
import { type GatewayFinding, lintGateway } from './lint-gateway.ts';

/** Explains one route, in sentences and numbers. */
export interface RouteExplanation {
  readonly name: string;
  /** The requests that the route matches, as text. */
  readonly matches: string;
  readonly upstream: string;
  /** What happens to a request, step by step and in order. */
  readonly steps: readonly string[];
  readonly time: WorstTime;
  readonly load: WorstLoad;
}

/** Explains what a gateway file does. `String(explanation)` is the whole text. */
export interface GatewayExplanation {
  readonly routes: readonly RouteExplanation[];
  readonly findings: readonly GatewayFinding[];
  readonly text: string;
  toString(): string;
}

/**
 * Explains each route of a gateway: what it does, its longest duration, and the highest load that it can
 * cause.
 */
export function explainGateway(config: GatewayConfig): GatewayExplanation {
  const routes = config.routes.map((route) => explainRoute(route, config));
  const findings = lintGateway(config);
  const text = [processText(config), ...routes.map(routeText), findingsText(findings)].join('\n\n');
  return { routes, findings, text, toString: () => text };
}

function explainRoute(route: RouteConfig, config: GatewayConfig): RouteExplanation {
  const upstream = config.upstreams.find(({ name }) => name === route.upstream)!;
  const { time, load } = explain(policy(route.attempts.policy as PolicySpec));
  const { attempts, fallback } = route;
  return {
    name: route.name,
    matches: matchText(route),
    upstream: upstream.name,
    steps: [
      ...protectionTexts([
        ['', route.protections],
        ['of the whole upstream, ', { ...upstream.protections, idempotency: null }],
      ]),
      instancesText(upstream),
      ...(attempts.circuitBreaker
        ? [
            `Each instance has a breaker: it opens after ${attempts.circuitBreaker.failureThreshold} failures in a row, stays open for half to all of ${ms(attempts.circuitBreaker.timeoutMs)}, and closes after ${attempts.circuitBreaker.halfOpenRequests} good probes.`,
          ]
        : ['There is no breaker of the file.']),
      ...(upstream.healthCheck
        ? [
            `Each instance is asked for ${upstream.healthCheck.path} every ${ms(upstream.healthCheck.intervalMs)}: ${upstream.healthCheck.unhealthyThreshold} failures take it out, ${upstream.healthCheck.healthyThreshold} successes bring it back; below ${percent(upstream.panicThreshold)} healthy instances this is ignored.`,
          ]
        : []),
      attemptsText(route, config),
      ...(fallback?.route === undefined
        ? []
        : [`If it fails, the route ${fallback.route} gets the request.`]),
      ...(fallback?.staleMs === undefined
        ? []
        : [`If a GET fails, the last good response is sent, if it is at most ${ms(fallback.staleMs)} old.`]),
      ...(fallback?.static
        ? [`If a GET fails, a fixed response with status ${fallback.static.status} is sent.`]
        : []),
    ],
    time,
    load,
  };
}

function matchText({ match }: RouteConfig): string {
  const methods = match.methods.length === 0 ? 'every method' : match.methods.join(', ');
  const hosts = match.hosts.length === 0 ? 'every host' : match.hosts.join(', ');
  const path = match.isExact
    ? `exactly ${match.path}`
    : match.path === '/'
      ? 'every path'
      : `${match.path} and below`;
  return `${methods} on ${hosts}, ${path}`;
}

function protectionTexts(all: readonly (readonly [whose: string, protections: Protections])[]): string[] {
  return [
    ...all.flatMap(([whose, { rateLimiting }]) => {
      if (!rateLimiting) return [];
      const { requestsPerSecond, burstSize, key, reportOnly } = rateLimiting;
      const who =
        key === 'all'
          ? 'all callers together'
          : key === 'client'
            ? 'each client'
            : `each value of ${key.slice(7)}`;
      const counts = reportOnly ? ', but so far it only counts' : '';
      return `Rate limit ${whose}for ${who}: ${requestsPerSecond} a second, ${burstSize} at once; above it 429${counts}.`;
    }),
    ...all.flatMap(([whose, { shedding }]) =>
      shedding
        ? `Shedding ${whose}by a limit on requests in flight that adapts between ${shedding.floor} and ${shedding.ceiling}: the least important are refused first, with 503.`
        : [],
    ),
    ...all.flatMap(([whose, { bulkhead }]) =>
      bulkhead
        ? `Bulkhead ${whose}${bulkhead.maxConcurrentRequests} requests at once, ${bulkhead.maxQueuedRequests} more wait for up to ${ms(bulkhead.queueTimeoutMs)}; above it 503.`
        : [],
    ),
    ...all.flatMap(([, { idempotency }]) =>
      idempotency
        ? `Idempotency keys for ${idempotency.methods.join(' and ')}: a repeated key gets the recorded response for ${ms(idempotency.keepMs)}; a request without a key ${idempotency.required ? 'is refused' : 'passes through unprotected, unless `required: true` is set'}.`
        : [],
    ),
  ];
}

function instancesText({ instances, loadBalancing, outlierEjection }: UpstreamConfig): string {
  const how = {
    p2c: 'the better of two drawn at random',
    roundRobin: 'in turn',
    hash: `by a hash of ${loadBalancing.on === 'client' ? 'the client address' : loadBalancing.on.replace('header:', 'the header ')}`,
  }[loadBalancing.strategy];
  const ejection = outlierEjection
    ? `; one that fails ${outlierEjection.consecutive} times in a row, and more than the others, rests for ${ms(outlierEjection.ejectForMs)} and longer, never more than half of them`
    : '';
  return `${instances.length} ${instances.length === 1 ? 'instance' : 'instances'}, chosen ${how}${ejection}.`;
}

function attemptsText({ attempts }: RouteConfig, { keptBodyBytes }: GatewayConfig): string {
  const limit =
    attempts.attemptTimeoutMs === 0
      ? 'each attempt has a time limit that is learnt'
      : attempts.attemptTimeoutMs < Infinity
        ? `each attempt has ${ms(attempts.attemptTimeoutMs)}`
        : 'an attempt may use all of it';
  const whole = `The request has ${ms(attempts.requestTimeoutMs)} until the response begins; ${limit}.`;
  if (!attempts.hasRetries) return `${whole} Nothing is retried.`;
  const hedge = attempts.hasHedge ? ' A slow attempt gets a second one beside it.' : '';
  return `${whole} Retries go to another instance if there is one; POST and PATCH only with an Idempotency-Key or if nothing was sent; bodies up to ${keptBodyBytes} bytes are kept for it.${hedge}`;
}

function processText({ listen, admin, workers, accessLog, stores }: GatewayConfig): string {
  const protocol = listen.tls ? 'HTTPS' : 'HTTP';
  return [
    `${protocol}${listen.http2 ? ' and HTTP/2' : ''} on ${listen.host}:${listen.port}, ${workers === 0 ? 'one worker for each core' : workers === 1 ? 'one process' : `${workers} workers`}.`,
    admin ? `The admin API is on ${admin.host}:${admin.port}.` : 'There is no admin API.',
    accessLog === false
      ? 'There is no access log.'
      : `The access log goes to ${accessLog === true ? 'the standard output' : accessLog}.`,
    workers === 1
      ? ''
      : `Breakers, budgets, bulkheads and health are each worker's own; rate limits are ${stores.rateLimits === undefined ? 'divided among the workers' : 'shared through a store'}.`,
  ]
    .filter((line) => line !== '')
    .join('\n');
}

function routeText({ name, matches, upstream, steps, time, load }: RouteExplanation): string {
  return [
    `Route ${name}: ${matches} → ${upstream}`,
    ...steps.map((step, index) => `  ${index + 1}. ${step}`),
    '  At worst',
    ...[...time.says, ...load.says].map((line) => `    ${line}`),
  ].join('\n');
}

function findingsText(findings: readonly GatewayFinding[]): string {
  if (findings.length === 0) return 'No findings.';
  return [
    `${findings.length} ${findings.length === 1 ? 'finding' : 'findings'}`,
    ...findings.flatMap(({ severity, rule, where, found, fix }) => [
      `  ${severity} ${rule} (${where}): ${found}.`,
      `    ${fix[0]!.toUpperCase()}${fix.slice(1).replace(/\.$/, '')}.`,
    ]),
  ].join('\n');
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function ms(value: number): string {
  if (value === Infinity) return 'no limit';
  if (value >= 3_600_000) return `${value / 3_600_000} h`;
  if (value >= 60_000) return `${value / 60_000} min`;
  return value >= 1000 ? `${value / 1000} s` : `${value} ms`;
}
