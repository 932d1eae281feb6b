import { hash } from 'node:crypto';
import type { RateLimits } from '@holdfast/contracts';
import { type Clock, OptionsError, type Random, systemClock, systemRandom } from 'holdfast';
import {
  callback,
  count,
  duration,
  type Field,
  flag,
  group,
  list,
  type Rate,
  rate,
  readTable,
  type SettingsOf,
  type SpecOf,
  shape,
  text,
  word,
} from 'holdfast/fields';
import { addressKey, clientAddress } from '../address.ts';
import type { Exchange } from '../exchange.ts';
import { able, trusted } from '../option-fields.ts';
import type { Part, Visit } from '../part.ts';
import { problem, retryAfter } from '../problem.ts';
import type { Answer } from '../response.ts';
import { LimiterKeys } from './limiter-keys.ts';
import { LocalLimits } from './local-limits.ts';
import { legacyFields, RateFields, type RatePolicy, type Taken } from './rate-policy.ts';
import { SharedLimits } from './shared-limits.ts';

/** A rate, and how many it is about: of `'100/m'` a hundred may pass at once. */
const quota: Field<Rate, { readonly ratePerMs: number; readonly times: number }> = {
  kind: 'a rate such as "100/m"',
  fallback: '100/m',
  read(value, path) {
    const ratePerMs = rate().read(value, path);
    if (ratePerMs === undefined) return undefined;
    return { ratePerMs, times: Math.max(1, Math.floor(Number.parseFloat(value as Rate))) };
  },
};

const limitFields = { name: text(), rate: quota, burst: count(undefined, 1) };

const fields = {
  limits: list(shape(limitFields), [{}]),
  key: callback<(exchange: Exchange) => string | undefined>(),
  perRoute: flag(),
  cost: callback<(exchange: Exchange) => number>(),
  proxies: trusted,
  rateLimits: able<RateLimits>('RateLimits', 'take'),
  whenAway: word('share', 'share', 'open', 'closed'),
  nodes: count(1, 1),
  timeout: duration('25ms'),
  lease: group({ tokensMax: count(20, 1), for: duration('100ms') }, false),
  keysMax: count(100_000, 2),
  fields: word('low', 'low', 'always', 'refused'),
  reportOnly: flag(),
  legacy: flag(),
  retryAfterCap: duration('1h'),
};

export type RateLimitOptions = SpecOf<typeof fields>;

export interface RateLimitCounts {
  allowed: number;
  refused: number;
  /** Of a limit that only reports: it would have been refused. */
  wouldRefuse: number;
}

export interface RateLimitPart extends Part {
  readonly counts: RateLimitCounts;
  /** Asks that the shared store did not answer in time. */
  readonly missed: number;
  /** Keys that are remembered in this process. */
  readonly keys: number;
}

/** Longer keys are kept as their hash, so that memory is bounded by their number. */
const keyLengthMax = 96;

/** So many a time for each caller and route: 100 a minute unless said. */
export function rateLimit(options: RateLimitOptions = {}, environment: RateEnvironment = {}): RateLimitPart {
  const settings = readTable(fields, options, 'rateLimit.');
  const { clock = systemClock, random = systemRandom } = environment;
  const { key: keyOf, cost: costOf, proxies, rateLimits, keysMax, reportOnly, legacy } = settings;
  const perRoute = settings.perRoute ?? true;
  const policies = settings.limits.map(toPolicy);
  demandLimits(policies);
  const texts = new RateFields(policies);
  const local = new LocalLimits(policies, keysMax);
  const shared =
    rateLimits &&
    new SharedLimits(
      policies,
      rateLimits,
      {
        timeoutMs: settings.timeout,
        whenAway: settings.whenAway,
        nodes: settings.nodes,
        keysMax,
        lease: settings.lease && { tokensMax: settings.lease.tokensMax, forMs: settings.lease.for },
      },
      clock,
    );
  /** While more than so many are left, nothing is told. */
  const toldBelow = { low: policies[0]!.burst / 2, always: Infinity, refused: -0.5 }[settings.fields];
  const counts: RateLimitCounts = { allowed: 0, refused: 0, wouldRefuse: 0 };

  const names = new LimiterKeys(nameOf);
  const namesOfPeers = new LimiterKeys((peer, route) => nameOf(addressKey(peer), route));

  function keyFor(exchange: Exchange): string {
    const route = perRoute ? exchange.route : undefined;
    const given = keyOf?.(exchange);
    if (given !== undefined) return names.of(given, route);
    if (!proxies) return namesOfPeers.of(exchange.peer, route);
    return names.of(addressKey(clientAddress(exchange, proxies)), route);
  }

  const isPlain = ![shared, keyOf, costOf, proxies].some((each) => each !== undefined);

  /** For who is known by the socket's address, and far from the limit. */
  function passes({ peer, route }: Visit): boolean {
    const key = namesOfPeers.of(peer, perRoute ? route : undefined);
    if (!local.tryTake(key, 1, clock.now(), toldBelow)) return false;
    counts.allowed++;
    return true;
  }

  function tell(exchange: Exchange, tokens: readonly number[]): void {
    exchange.setHeader('ratelimit-policy', texts.policy);
    exchange.setHeader('ratelimit', texts.limit(tokens, 0));
    if (!legacy) return;
    for (const [name, value] of Object.entries(legacyFields(policies[0]!, tokens[0]!))) {
      exchange.setHeader(name, value);
    }
  }

  function settle(exchange: Exchange, { waitMs, tokens, violated }: Taken): Answer | undefined {
    if (waitMs === 0 || reportOnly) {
      if (waitMs === 0) counts.allowed++;
      else counts.wouldRefuse++;
      const isLow = tokens.some((each, index) => each <= policies[index]!.burst / 2);
      if (!reportOnly && (settings.fields === 'always' || (settings.fields === 'low' && isLow)))
        tell(exchange, tokens);
      return undefined;
    }
    counts.refused++;
    return problem(
      'quota-exceeded',
      {
        'ratelimit-policy': texts.policy,
        ratelimit: texts.limit(tokens, waitMs),
        // More than the whole limit never passes: there is nothing to wait for.
        ...(waitMs < Infinity && { 'retry-after': retryAfter(waitMs, random, settings.retryAfterCap) }),
        ...(legacy && legacyFields(policies[0]!, tokens[0]!)),
      },
      { 'violated-policies': violated },
    );
  }

  return {
    name: 'rateLimit',
    counts,
    get missed() {
      return shared?.line.missed ?? 0;
    },
    get keys() {
      return local.size;
    },
    enter(exchange) {
      const key = keyFor(exchange);
      const cost = costOf ? demandCost(costOf(exchange)) : 1;
      const now = exchange.nowBy(clock);
      if (!shared) {
        if (!local.tryTake(key, cost, now, toldBelow)) return settle(exchange, local.take(key, cost, now));
        counts.allowed++;
        return undefined;
      }
      const taken = shared.take(key, cost, now);
      return taken instanceof Promise
        ? taken.then((late) => settle(exchange, late))
        : settle(exchange, taken);
    },
    passes: isPlain ? passes : undefined,
  };
}

export interface RateEnvironment {
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

function nameOf(caller: string, route: string | undefined): string {
  const name = route === undefined ? caller : `${caller} ${route}`;
  if (name.length <= keyLengthMax && !name.includes('}')) return name;
  return hash('sha256', name, 'base64url');
}

function demandLimits(policies: readonly RatePolicy[]): void {
  if (policies.length === 0) throw new OptionsError('rateLimit.limits', [], 'at least one limit');
  policies.forEach(({ name }, index) => {
    if (policies.findIndex((each) => each.name === name) === index) return;
    throw new OptionsError(`rateLimit.limits[${index}].name`, name, 'a name of its own');
  });
}

/** What is no number would leave a key without a limit from then on. */
function demandCost(cost: number): number {
  if (cost >= 0) return cost;
  throw new OptionsError('rateLimit.cost', cost, 'a number of at least 0');
}

function toPolicy(
  { name, rate: { ratePerMs, times }, burst }: SettingsOf<typeof limitFields>,
  index: number,
  all: readonly unknown[],
): RatePolicy {
  const called = name ?? (all.length === 1 ? 'default' : `limit${index + 1}`);
  if (!/^[a-z0-9_.-]{1,64}$/i.test(called)) {
    throw new OptionsError(
      `rateLimit.limits[${index}].name`,
      called,
      'a name of letters, digits, ".", "_" and "-"',
    );
  }
  return { name: called, ratePerMs, burst: burst ?? times };
}
