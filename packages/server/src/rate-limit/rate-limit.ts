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
import { objectWith, peersField } from '../option-fields.ts';
import type { FastPathRequest, Part } from '../part.ts';
import { problem, retryAfterHeader } from '../problem.ts';
import type { PlainResponse } from '../response.ts';
import { LimiterKeys } from './limiter-keys.ts';
import { LocalLimits } from './local-limits.ts';
import { legacyFields, RateFields, type RatePolicy, type Taken } from './rate-policy.ts';
import { SharedLimits } from './shared-limits.ts';

/** Reads a rate. Its number is also the default burst: with `'100/m'`, 100 requests may pass at the same moment. */
const quota: Field<Rate, { readonly ratePerMs: number; readonly times: number }> = {
  kind: 'a rate such as "100/m"',
  default: '100/m',
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
  proxies: peersField,
  rateLimits: objectWith<RateLimits>('RateLimits', 'take'),
  whenUnavailable: word('share', 'share', 'open', 'closed'),
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
  /** Requests that would have been refused without the option `reportOnly`. */
  wouldRefuse: number;
}

export interface RateLimitPart extends Part {
  readonly counts: RateLimitCounts;
  /** How many requests got no result from the shared store in time. */
  readonly missed: number;
  /** How many keys are stored in this process. */
  readonly keys: number;
}

/** Longer keys are replaced by their hash, so that a limit on the number of keys also limits memory. */
const keyLengthMax = 96;

/** Makes a part that limits the requests of each caller to each route; 100 a minute by default. */
export function rateLimit(options: RateLimitOptions = {}, environment: RateEnvironment = {}): RateLimitPart {
  const settings = readTable(fields, options, 'rateLimit.');
  const { clock = systemClock, random = systemRandom } = environment;
  const { key: keyOf, cost: costOf, proxies, rateLimits, keysMax, reportOnly, legacy } = settings;
  const perRoute = settings.perRoute ?? true;
  const policies = settings.limits.map(toPolicy);
  assertLimits(policies);
  const rateFields = new RateFields(policies);
  const local = new LocalLimits(policies, keysMax);
  const shared =
    rateLimits &&
    new SharedLimits(
      policies,
      rateLimits,
      {
        timeoutMs: settings.timeout,
        whenUnavailable: settings.whenUnavailable,
        nodes: settings.nodes,
        keysMax,
        lease: settings.lease && { tokensMax: settings.lease.tokensMax, forMs: settings.lease.for },
      },
      clock,
    );
  /**
   * A response needs no `RateLimit` headers if more tokens than this are left; `tryTake` then decides the request. With
   * -0.5 no response to an admitted request gets the headers, with Infinity all responses get them.
   */
  const fieldsBelow = { low: policies[0]!.burst / 2, always: Infinity, refused: -0.5 }[settings.fields];
  const counts: RateLimitCounts = { allowed: 0, refused: 0, wouldRefuse: 0 };

  const keys = new LimiterKeys(limiterKey);
  const keysOfPeers = new LimiterKeys((peer, route) => limiterKey(addressKey(peer), route));

  function keyFor(exchange: Exchange): string {
    const route = perRoute ? exchange.route : undefined;
    const caller = keyOf?.(exchange);
    if (caller !== undefined) return keys.of(caller, route);
    if (!proxies) return keysOfPeers.of(exchange.peer, route);
    return keys.of(addressKey(clientAddress(exchange, proxies)), route);
  }

  const hasFastPath = ![shared, keyOf, costOf, proxies].some((each) => each !== undefined);

  /**
   * Lets a request pass without an Exchange object. It is used only if callers are identified by the address of the
   * socket. Returns false if the caller is close to its limit.
   */
  function tryFastPath({ peer, route }: FastPathRequest): boolean {
    const key = keysOfPeers.of(peer, perRoute ? route : undefined);
    if (!local.tryTake(key, 1, clock.now(), fieldsBelow)) return false;
    counts.allowed++;
    return true;
  }

  function setFields(exchange: Exchange, tokens: readonly number[]): void {
    exchange.setHeader('ratelimit-policy', rateFields.policy);
    exchange.setHeader('ratelimit', rateFields.limit(tokens, 0));
    if (!legacy) return;
    for (const [name, value] of Object.entries(legacyFields(policies[0]!, tokens[0]!))) {
      exchange.setHeader(name, value);
    }
  }

  function settle(exchange: Exchange, { waitMs, tokens, violated }: Taken): PlainResponse | undefined {
    if (waitMs === 0 || reportOnly) {
      if (waitMs === 0) counts.allowed++;
      else counts.wouldRefuse++;
      const isLow = tokens.some((each, index) => each <= policies[index]!.burst / 2);
      if (!reportOnly && (settings.fields === 'always' || (settings.fields === 'low' && isLow)))
        setFields(exchange, tokens);
      return undefined;
    }
    counts.refused++;
    return problem(
      'quota-exceeded',
      {
        'ratelimit-policy': rateFields.policy,
        ratelimit: rateFields.limit(tokens, waitMs),
        // A request that costs more than the burst can never pass, so it gets no Retry-After.
        ...(waitMs < Infinity && { 'retry-after': retryAfterHeader(waitMs, random, settings.retryAfterCap) }),
        ...(legacy && legacyFields(policies[0]!, tokens[0]!)),
      },
      { 'violated-policies': violated },
    );
  }

  return {
    name: 'rateLimit',
    counts,
    get missed() {
      return shared?.store.missed ?? 0;
    },
    get keys() {
      return local.size;
    },
    enter(exchange) {
      const key = keyFor(exchange);
      const cost = costOf ? assertCost(costOf(exchange)) : 1;
      const now = exchange.nowOf(clock);
      if (!shared) {
        if (!local.tryTake(key, cost, now, fieldsBelow)) return settle(exchange, local.take(key, cost, now));
        counts.allowed++;
        return undefined;
      }
      const taken = shared.take(key, cost, now);
      return taken instanceof Promise
        ? taken.then((result) => settle(exchange, result))
        : settle(exchange, taken);
    },
    tryFastPath: hasFastPath ? tryFastPath : undefined,
  };
}

export interface RateEnvironment {
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

function limiterKey(caller: string, route: string | undefined): string {
  const key = route === undefined ? caller : `${caller} ${route}`;
  if (key.length <= keyLengthMax && !key.includes('}')) return key;
  return hash('sha256', key, 'base64url');
}

function assertLimits(policies: readonly RatePolicy[]): void {
  if (policies.length === 0) throw new OptionsError('rateLimit.limits', [], 'at least one limit');
  policies.forEach(({ name }, index) => {
    if (policies.findIndex((each) => each.name === name) === index) return;
    throw new OptionsError(`rateLimit.limits[${index}].name`, name, 'a name of its own');
  });
}

/** Throws if the cost is negative or NaN. NaN would switch off the limit of this key from then on. */
function assertCost(cost: number): number {
  if (cost >= 0) return cost;
  throw new OptionsError('rateLimit.cost', cost, 'a number of at least 0');
}

function toPolicy(
  { name, rate: { ratePerMs, times }, burst }: SettingsOf<typeof limitFields>,
  index: number,
  all: readonly unknown[],
): RatePolicy {
  const policyName = name ?? (all.length === 1 ? 'default' : `limit${index + 1}`);
  if (!/^[a-z0-9_.-]{1,64}$/i.test(policyName)) {
    throw new OptionsError(
      `rateLimit.limits[${index}].name`,
      policyName,
      'a name of letters, digits, ".", "_" and "-"',
    );
  }
  return { name: policyName, ratePerMs, burst: burst ?? times };
}
