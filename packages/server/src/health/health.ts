import { timingSafeEqual } from 'node:crypto';
import { type BreakerState, type Clock, OptionsError, policies, systemClock } from 'holdfast';
import { callback, duration, type Field, flag, rate, readTable, type SpecOf, text } from 'holdfast/fields';
import { addressKey, clientAddress } from '../address.ts';
import type { Exchange } from '../exchange.ts';
import { trusted } from '../option-fields.ts';
import type { Part } from '../part.ts';
import { within } from '../pause.ts';
import { problem } from '../problem.ts';
import { LocalLimits } from '../rate-limit/local-limits.ts';
import type { Answer } from '../response.ts';

export interface Dependency {
  /** Throws, or gives false, where it does not work. */
  readonly check?: ((signal: AbortSignal) => unknown) | undefined;
  /** The name of a policy: its breakers tell. Open to all targets is a failure. */
  readonly policy?: string | undefined;
  /** True unless said: without it the service is not ready. Otherwise it is only degraded. */
  readonly critical?: boolean | undefined;
}

export type HealthStatus = 'pass' | 'warn' | 'fail';

export interface DependencyHealth {
  readonly status: HealthStatus;
  readonly critical: boolean;
  /** By target: `closed`, `open` or `half-open`. */
  readonly breakers?: Readonly<Record<string, BreakerState>>;
  readonly error?: string;
  readonly tookMs?: number;
}

const dependencyFields = {
  check: callback<NonNullable<Dependency['check']>>(),
  policy: text(),
  critical: flag(),
};

/** One that nobody looks at would always be well. */
const byName: Field<Readonly<Record<string, Dependency>>, Readonly<Record<string, Dependency>>> = {
  kind: 'dependencies by name',
  read(value, path) {
    if (typeof value !== 'object') return undefined;
    for (const [name, each] of Object.entries(value as Readonly<Record<string, unknown>>)) {
      const at = `${path}.${name}`;
      const said = typeof each === 'object' && each ? readTable(dependencyFields, each, `${at}.`) : undefined;
      if (!said?.check && !said?.policy) throw new OptionsError(at, each, 'an object with check or policy');
    }
    return value as Readonly<Record<string, Dependency>>;
  },
};

const fields = {
  live: text(),
  ready: text(),
  overall: text(),
  dependencies: byName,
  every: duration('1s', undefined, 1000),
  timeout: duration('1s'),
  started: flag(),
  details: callback<(exchange: Exchange) => boolean>(),
  token: text(),
  rate: rate('20/s'),
  proxies: trusted,
};

export type HealthOptions = SpecOf<typeof fields>;

export interface HealthPart extends Part {
  /** From now on `/readyz` is the dependencies' business; said at the start unless `started: false`. */
  started(): void;
  /** From now on `/readyz` says no, and everything else goes on. */
  drain(): void;
  readonly isDraining: boolean;
  /** As `/health` tells it. Asks the dependencies if that was not done in the last second. */
  read(): Promise<{
    readonly status: HealthStatus;
    readonly checks: Readonly<Record<string, DependencyHealth>>;
  }>;
}

/** `/livez`, `/readyz` and `/health`, answered before anything else and limited for each address. */
export function health(
  options: HealthOptions = {},
  environment: { readonly clock?: Clock | undefined } = {},
): HealthPart {
  const settings = readTable(fields, options, 'health.');
  const { clock = systemClock } = environment;
  const { live = '/livez', ready = '/readyz', overall = '/health', dependencies = {}, token } = settings;
  for (const path of [live, ready, overall]) demandPath(path);
  const details = settings.details ?? ((exchange) => token !== undefined && bears(exchange, token));
  const limits = new LocalLimits(
    [{ name: 'health', ratePerMs: settings.rate, burst: Math.max(1, settings.rate * 1000) }],
    10_000,
  );
  let isStarted = settings.started ?? true;
  let isDraining = false;
  let known: Promise<Readonly<Record<string, DependencyHealth>>> | undefined;
  let knownUntil = -Infinity;

  async function look(name: string, dependency: Dependency): Promise<readonly [string, DependencyHealth]> {
    const { critical = true } = dependency;
    const breakers = dependency.policy === undefined ? undefined : breakersOf(dependency.policy);
    const states = Object.values(breakers ?? {});
    const broken = states.length > 0 && states.every((state) => state === 'open');
    const since = clock.now();
    const error = broken ? 'its breaker is open' : await failureOf(dependency);
    const failed = critical ? 'fail' : 'warn';
    return [
      name,
      {
        status: error !== undefined ? failed : states.some((state) => state !== 'closed') ? 'warn' : 'pass',
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
    const asked = (async () => check(controller.signal))().then(
      (answer) => ({ failure: answer === false ? 'it said no' : undefined }),
      (error: unknown) => ({
        failure: (error instanceof Error ? error.message : String(error)).slice(0, 200),
      }),
    );
    const told = await within(clock, settings.timeout, asked);
    if (told) return told.failure;
    controller.abort();
    return `it took longer than ${settings.timeout} ms`;
  }

  /** One look for all who ask within a second: nobody can hammer a dependency through this door. */
  function lookAtAll(): Promise<Readonly<Record<string, DependencyHealth>>> {
    const now = clock.now();
    if (!known || now >= knownUntil) {
      knownUntil = now + settings.every;
      known = Promise.all(Object.entries(dependencies).map(([name, each]) => look(name, each))).then((all) =>
        Object.fromEntries(all),
      );
    }
    return known;
  }

  async function read() {
    const checks = await lookAtAll();
    const statuses = Object.values(checks).map(({ status }) => status);
    const isReady = isStarted && !isDraining;
    const status: HealthStatus =
      !isReady || statuses.includes('fail') ? 'fail' : statuses.includes('warn') ? 'warn' : 'pass';
    return { status, checks };
  }

  async function tell(exchange: Exchange): Promise<Answer> {
    const { status, checks } = await read();
    const told = details(exchange)
      ? { status, started: isStarted, draining: isDraining, checks }
      : { status };
    return answer(status === 'fail' ? 503 : 200, told);
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
      // Alive is who can say so. That others are not is no reason to be restarted.
      return path === live ? answer(200, { status: 'pass' }) : tell(exchange);
    },
  };
}

function breakersOf(policy: string): Record<string, BreakerState> {
  const state = policies().find(({ name }) => name === policy);
  const targets = (state?.targets ?? []).filter(({ breaker }) => breaker !== undefined);
  return Object.fromEntries(targets.map(({ target, breaker }) => [target ?? '', breaker!]));
}

function answer(status: number, told: object): Answer {
  return {
    status,
    headers: { 'content-type': 'application/health+json', 'cache-control': 'no-store' },
    body: JSON.stringify(told),
  };
}

function bears(exchange: Exchange, token: string): boolean {
  const given = Buffer.from(exchange.header('authorization') ?? '');
  const wanted = Buffer.from(`Bearer ${token}`);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

function demandPath(path: unknown): void {
  if (typeof path === 'string' && path.startsWith('/')) return;
  throw new OptionsError('health', path, 'a path such as "/readyz"');
}
