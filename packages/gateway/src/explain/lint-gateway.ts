import { lint } from 'holdfast/lint';
import type { AttemptsConfig, GatewayConfig, RouteConfig, UpstreamConfig } from '../file/gateway-config.ts';
import { adviceFor, fieldFor } from './policy-advice.ts';

/** A setting in a gateway file that is valid, but probably a mistake. */
export interface GatewayFinding {
  /** The id of the rule, such as `no-breaker`. */
  readonly rule: string;
  readonly severity: 'error' | 'warning' | 'advice';
  /** The part of the file: `upstream orders`, `route /orders/*` or `gateway`. */
  readonly where: string;
  /** What the problem is, as a sentence. */
  readonly found: string;
  /** How to repair it, as a sentence. */
  readonly fix: string;
}

type Note = (
  rule: string,
  severity: GatewayFinding['severity'],
  where: string,
  found: string,
  fix: string,
) => void;

const order = ['error', 'warning', 'advice'];

/**
 * Returns probable mistakes in a configuration, the most severe first. They include the findings of `lint` in
 * `holdfast`.
 */
export function lintGateway(config: GatewayConfig): GatewayFinding[] {
  const findings: GatewayFinding[] = [];
  const note: Note = (rule, severity, where, found, fix) => {
    findings.push({ rule, severity, where, found, fix });
  };
  lintProcess(config, note);
  lintDurations(config, note);
  for (const upstream of config.upstreams) {
    lintUpstream(upstream, config, note);
    lintPolicy(`upstream ${upstream.name}`, upstream.attempts, note);
  }
  for (const route of config.routes) {
    lintRoute(route, config, note);
    if (route.attempts.isOwn) lintPolicy(`route ${route.name}`, route.attempts, note);
  }
  return findings.sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
}

function lintPolicy(where: string, attempts: AttemptsConfig, note: Note): void {
  const { policy, circuitBreaker, hasRetries } = attempts;
  // `runsKnow` is true, because the gateway decides for each request whether it may be repeated.
  for (const { rule, severity, path, found, fix } of lint(policy, { runsKnow: true })) {
    // `circuitBreaker` has a fixed open time by design, as in other gateways.
    if (rule === 'fixed-open-time' && circuitBreaker) continue;
    // Without retries, nothing comes after an attempt that hangs, and `timeouts.request` limits it.
    if (rule === 'no-timeout' && !hasRetries && policy.patience !== 'unlimited') continue;
    // `lintUpstream` has this rule, too.
    if (rule === 'no-breaker' && where.startsWith('upstream ')) continue;
    note(
      rule,
      severity,
      `${where}, ${fieldFor(rule, path, attempts)}`,
      found,
      adviceFor(rule, fix, attempts),
    );
  }
}

/** `30` is 30 ms, but who writes a small number without a unit probably means seconds. */
function lintDurations({ bareDurations = [] }: GatewayConfig, note: Note): void {
  for (const { place, path, ms } of bareDurations)
    note(
      'bare-duration',
      'warning',
      `${place}, ${path}`,
      `a number without a unit is in milliseconds, so ${ms} means ${ms} ms`,
      `write \`${ms}s\` or \`${ms}ms\``,
    );
}

function lintProcess({ admin, listen, routes, upstreams }: GatewayConfig, note: Note): void {
  if (admin && !isLoopback(admin.host) && admin.token === undefined)
    note(
      'open-admin',
      'error',
      'gateway',
      `the admin API listens on ${admin.host} with a token that only the log of the start shows`,
      'give it a token in `admin.token`, or leave it on 127.0.0.1',
    );
  if (listen.tls === null && !isLoopback(listen.host))
    note(
      'no-tls',
      'advice',
      'gateway',
      `clients connect to ${listen.host} without TLS`,
      'give listen.tls a certificate, unless something before the gateway has one',
    );
  for (const { name } of upstreams)
    if (!routes.some(({ upstream }) => upstream === name))
      note(
        'unused-upstream',
        'warning',
        `upstream ${name}`,
        'no route leads to it',
        'remove it, or add a route',
      );
  if (routes.length === 0) note('no-routes', 'error', 'gateway', 'there is no route', 'add one under routes');
}

function lintUpstream(upstream: UpstreamConfig, { stores, workers }: GatewayConfig, note: Note): void {
  const { name, instances, healthCheck, attempts, protections, tls, connectionsMax } = upstream;
  const where = `upstream ${name}`;
  if (tls.insecureSkipVerify)
    note(
      'unverified-tls',
      // The file says so in its own words, so this does not refuse the start.
      'warning',
      where,
      'certificates are not verified, so anybody on the way can answer',
      'give tls.ca the authority of the certificate',
    );
  if (attempts.policy.breaker === false && attempts.hasRetries)
    note(
      'no-breaker',
      'warning',
      where,
      'there are retries and no breaker, so a dead instance gets requests for ever',
      'add `circuitBreaker: true`',
    );
  if (instances.length > 1 && !healthCheck)
    note(
      'no-health-check',
      'advice',
      where,
      `${instances.length} instances and no health check: a dead one is found by failing requests`,
      'add `healthCheck: true`',
    );
  if (instances.length === 1 && attempts.hasRetries)
    note(
      'single-instance',
      'advice',
      where,
      'a retry has no other instance to go to',
      'add an instance, if the service has another',
    );
  if (attempts.requestTimeoutMs === Infinity)
    note(
      'no-timeout',
      'warning',
      where,
      'a request may wait for ever, and hold its permit and its connection',
      'give it a limit: `timeouts: { request: 30s }`',
    );
  if (healthCheck && healthCheck.timeoutMs >= healthCheck.intervalMs)
    note(
      'slow-health-check',
      'warning',
      where,
      `a check may take ${healthCheck.timeoutMs} ms, and the next one is due after ${healthCheck.intervalMs} ms`,
      'make the timeout shorter than the interval',
    );
  const { bulkhead, rateLimiting } = protections;
  if (bulkhead && bulkhead.maxConcurrentRequests > connectionsMax * instances.length)
    note(
      'few-connections',
      'warning',
      where,
      `${bulkhead.maxConcurrentRequests} requests may be in flight, and there are ${connectionsMax * instances.length} connections`,
      'raise connections, or lower maxConcurrentRequests',
    );
  if (rateLimiting && workers !== 1 && stores.rateLimits === undefined) noteDivided(where, note);
}

function lintRoute(route: RouteConfig, { stores, workers, keptBodyBytes }: GatewayConfig, note: Note): void {
  const where = `route ${route.name}`;
  const { idempotency, rateLimiting } = route.protections;
  if (rateLimiting && workers !== 1 && stores.rateLimits === undefined) noteDivided(where, note);
  if (idempotency && stores.ledger === undefined)
    note(
      workers === 1 ? 'keys-in-memory' : 'keys-not-shared',
      workers === 1 ? 'warning' : 'error',
      where,
      workers === 1
        ? 'idempotency keys are kept in memory: a restart forgets them, and a repeated request is executed again'
        : 'each worker has its own idempotency keys, so a repeated request can be executed by another worker',
      'give stores.ledger a store',
    );
  if (idempotency?.scope === 'public')
    note(
      'public-keys',
      'warning',
      where,
      'all callers share one set of keys: who guesses a key gets the response of another',
      'use scope: "header:authorization" or the header that names the caller',
    );
  const methods = route.match.methods;
  const hasPosts = methods.length === 0 || methods.some((method) => method === 'POST' || method === 'PATCH');
  if (route.attempts.hasRetries && hasPosts && !idempotency)
    note(
      'posts-not-repeated',
      'advice',
      where,
      'POST and PATCH are repeated only with an Idempotency-Key, or if nothing was sent',
      'add idempotency, if the service itself does not know the keys',
    );
  if (route.attempts.hasRetries && keptBodyBytes === 0)
    note('no-kept-body', 'warning', where, 'no request with a body is repeated', 'give keptBody a size');
}

function noteDivided(where: string, note: Note): void {
  note(
    'divided-limit',
    'advice',
    where,
    'each worker enforces its share of the rate limit, so a client with few connections gets less than the whole',
    'give stores.rateLimits a store',
  );
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.');
}
