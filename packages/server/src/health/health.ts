import { timingSafeEqual } from 'node:crypto';
import { type BreakerState, type Duration, OptionsError, policies, systemClock } from 'holdfast';
import {
  callback,
  duration,
  type Field,
  type FieldsOf,
  flag,
  type Rate,
  rate,
  readTable,
  text,
} from 'holdfast/fields';
import { addressKey, clientAddress, type Peers } from '../address.ts';
import type { Exchange } from '../exchange.ts';
import { peersField, readOptions } from '../option-fields.ts';
import type { Part } from '../part.ts';
import type { PartEnvironment } from '../part-environment.ts';
import { problem } from '../problem.ts';
import { LocalLimits } from '../rate-limit/local-limits.ts';
import type { PlainResponse } from '../response.ts';
import { withTimeout } from './with-timeout.ts';

/** Another system that the service needs, such as a database. */
export interface Dependency {
  /**
   * A function that throws or returns false if the dependency does not work. Needed if there is no `policy`.
   * Default: none.
   */
  readonly check?: ((signal: AbortSignal) => unknown) | undefined;
  /**
   * The name of the policy with which the service calls the dependency. If the breakers of all its targets
   * are open, the dependency has failed. Default: none.
   */
  readonly policy?: string | undefined;
  /**
   * Whether the service is not ready while this dependency fails. False: a failure is only a warning.
   * Default: `true`.
   */
  readonly critical?: boolean | undefined;
}

/**
 * `warn`: a dependency that is not critical has failed, a breaker is not closed, or no policy has the name that
 * a dependency gives.
 */
export type HealthStatus = 'pass' | 'warn' | 'fail';

/** The result of the last check of a dependency. */
export interface DependencyHealth {
  readonly status: HealthStatus;
  readonly critical: boolean;
  /** The state of the circuit breaker of each target of the policy. */
  readonly breakers?: Readonly<Record<string, BreakerState>>;
  readonly error?: string;
  readonly tookMs?: number;
}

const dependencyFields = {
  check: callback<NonNullable<Dependency['check']>>(),
  policy: text(),
  critical: flag(),
};

/** A dependency without `check` and without `policy` would always pass, so it is rejected. */
const dependenciesField: Field<Readonly<Record<string, Dependency>>, Readonly<Record<string, Dependency>>> = {
  kind: 'dependencies by name',
  read(value, path) {
    if (typeof value !== 'object') return undefined;
    for (const [name, each] of Object.entries(value as Readonly<Record<string, unknown>>)) {
      const at = `${path}.${name}`;
      const dependency =
        typeof each === 'object' && each ? readTable(dependencyFields, each, `${at}.`) : undefined;
      if (!dependency?.check && !dependency?.policy)
        throw new OptionsError(at, each, 'an object with check or policy');
    }
    return value as Readonly<Record<string, Dependency>>;
  },
};

/** The options of `health`: the paths that it responds to, and the dependencies of the service. */
export interface HealthOptions {
  /** The path that tells whether the process is alive. Default: `/livez`. */
  live?: string | undefined;
  /** The path that tells load balancers whether to send requests to this process. Default: `/readyz`. */
  ready?: string | undefined;
  /** The path that tells the health of the service and its dependencies. Default: `/health`. */
  overall?: string | undefined;
  /** The dependencies of the service, by name. Default: none. */
  dependencies?: Readonly<Record<string, Dependency>> | undefined;
  /** The shortest time between two checks of the dependencies, at least a second. Default: `1s`. */
  every?: Duration | undefined;
  /**
   * How long the check of a dependency may take. After this time, the check counts as failed. Default: `1s`.
   */
  timeout?: Duration | undefined;
  /** False: the service is not ready until `started()` of the health part is called. Default: `true`. */
  started?: boolean | undefined;
  /**
   * Returns whether the response to this request shows the dependencies. Default: requests with the `token`.
   */
  details?: ((exchange: Exchange) => boolean) | undefined;
  /**
   * A bearer token. The dependencies are shown only to requests with this token, unless `details` is given.
   * Default: none.
   */
  token?: string | undefined;
  /** The most requests from one client address to these paths. Default: `20/s`. */
  rate?: Rate | undefined;
  /**
   * The proxies in front of this server. Only their `X-Forwarded-For` header is used to find a client's
   * address. Default: none.
   */
  proxies?: Peers | undefined;
}

export const healthFields = {
  live: text('/livez'),
  ready: text('/readyz'),
  overall: text('/health'),
  dependencies: dependenciesField,
  every: duration('1s', undefined, 1000),
  timeout: duration('1s'),
  started: flag(true),
  details: callback<(exchange: Exchange) => boolean>(),
  token: text(),
  rate: rate('20/s'),
  proxies: peersField,
} satisfies FieldsOf<HealthOptions>;

/**
 * Responds to health probes (`/livez`, `/readyz`, `/health`). It runs first, so no other part refuses a
 * probe.
 */
export interface HealthPart extends Part {
  /** Call it when the service has started. If the option `started` is false, `/readyz` fails until then. */
  started(): void;
  /** Makes `/readyz` and `/health` fail from now on, so that load balancers choose other servers. */
  drain(): void;
  readonly isDraining: boolean;
  /** Returns what `/health` shows. The dependencies are checked at most once in the time `every`. */
  read(): Promise<{
    readonly status: HealthStatus;
    readonly checks: Readonly<Record<string, DependencyHealth>>;
  }>;
}

/**
 * A part for `guard` that responds to `/livez`, `/readyz` and `/health`. The rate of these requests is
 * limited for each client address.
 */
export function health(options: HealthOptions = {}, environment: PartEnvironment = {}): HealthPart {
  const settings = readOptions(healthFields, options, 'health', '{ dependencies: { db: { check } } }');
  const { clock = systemClock } = environment;
  const { live, ready, overall, dependencies = {}, token } = settings;
  for (const path of [live, ready, overall]) assertPath(path);
  const details = settings.details ?? ((exchange) => token !== undefined && hasBearerToken(exchange, token));
  const limits = new LocalLimits(
    [{ name: 'health', ratePerMs: settings.rate, burst: Math.max(1, settings.rate * 1000) }],
    10_000,
  );
  let isStarted = settings.started;
  let isDraining = false;
  let checked: Promise<Readonly<Record<string, DependencyHealth>>> | undefined;
  let checkedUntil = -Infinity;

  async function checkDependency(
    name: string,
    dependency: Dependency,
  ): Promise<readonly [string, DependencyHealth]> {
    const { critical = true } = dependency;
    const breakers = dependency.policy === undefined ? undefined : breakersOf(dependency.policy);
    const states = Object.values(breakers ?? {});
    const isUnknown = dependency.policy !== undefined && breakers === undefined;
    const broken = states.length > 0 && states.every((state) => state === 'open');
    const since = clock.now();
    const failure = broken ? 'its breaker is open' : await failureOf(dependency);
    const failed = critical ? 'fail' : 'warn';
    // The policy may be created later, so a missing one is only a warning.
    const error = failure ?? (isUnknown ? `no policy is named ${dependency.policy}` : undefined);
    const isDoubtful = isUnknown || states.some((state) => state !== 'closed');
    return [
      name,
      {
        status: failure !== undefined ? failed : isDoubtful ? 'warn' : 'pass',
        critical,
        ...(breakers && { breakers }),
        ...(error !== undefined && { error }),
        ...(dependency.check && { tookMs: Math.round(clock.now() - since) }),
      },
    ];
  }

  async function failureOf({ check }: Dependency): Promise<string | undefined> {
    if (!check) return undefined;
    const controller = new AbortController();
    const result = (async () => check(controller.signal))().then(
      (value) => ({ failure: value === false ? 'it said no' : undefined }),
      (error: unknown) => ({
        failure: (error instanceof Error ? error.message : String(error)).slice(0, 200),
      }),
    );
    const settled = await withTimeout(clock, settings.timeout, result);
    if (settled) return settled.failure;
    controller.abort();
    return `it took longer than ${settings.timeout} ms`;
  }

  /**
   * Dependencies are checked at most once in the time `every`, so that health requests cannot overload them.
   */
  function checkAll(): Promise<Readonly<Record<string, DependencyHealth>>> {
    const now = clock.now();
    if (!checked || now >= checkedUntil) {
      checkedUntil = now + settings.every;
      checked = Promise.all(
        Object.entries(dependencies).map(([name, each]) => checkDependency(name, each)),
      ).then((all) => Object.fromEntries(all));
    }
    return checked;
  }

  async function read() {
    const checks = await checkAll();
    const statuses = Object.values(checks).map(({ status }) => status);
    const isReady = isStarted && !isDraining;
    const status: HealthStatus =
      !isReady || statuses.includes('fail') ? 'fail' : statuses.includes('warn') ? 'warn' : 'pass';
    return { status, checks };
  }

  async function respond(exchange: Exchange): Promise<PlainResponse> {
    const { status, checks } = await read();
    const shown = details(exchange)
      ? { status, started: isStarted, draining: isDraining, checks }
      : { status };
    return healthResponse(status === 'fail' ? 503 : 200, shown);
  }

  return {
    name: 'health',
    started() {
      isStarted = true;
    },
    drain() {
      isDraining = true;
    },
    get isDraining() {
      return isDraining;
    },
    read,
    enter(exchange) {
      const { url } = exchange;
      const path = url.length > 64 ? url : exchange.path;
      if (path !== live && path !== ready && path !== overall) return undefined;
      if (exchange.method !== 'GET' && exchange.method !== 'HEAD') return undefined;
      const caller = addressKey(clientAddress(exchange, settings.proxies));
      if (limits.take(caller, 1, clock.now()).waitMs > 0) {
        return problem('quota-exceeded', { 'retry-after': '1' });
      }
      // `/livez` is only about this process, so it ignores failed dependencies.
      return path === live ? healthResponse(200, { status: 'pass' }) : respond(exchange);
    },
  };
}

/** Returns `undefined` if no policy has this name. */
function breakersOf(policy: string): Record<string, BreakerState> | undefined {
  const state = policies().find(({ name }) => name === policy);
  if (!state) return undefined;
  const targets = state.targets.filter(({ breaker }) => breaker !== undefined);
  return Object.fromEntries(targets.map(({ target, breaker }) => [target ?? '', breaker!]));
}

function healthResponse(status: number, body: object): PlainResponse {
  return {
    status,
    headers: { 'content-type': 'application/health+json', 'cache-control': 'no-store' },
    body: JSON.stringify(body),
  };
}

function hasBearerToken(exchange: Exchange, token: string): boolean {
  const given = Buffer.from(exchange.header('authorization') ?? '');
  const wanted = Buffer.from(`Bearer ${token}`);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

function assertPath(path: unknown): void {
  if (typeof path === 'string' && path.startsWith('/')) return;
  throw new OptionsError('health', path, 'a path such as "/readyz"');
}
