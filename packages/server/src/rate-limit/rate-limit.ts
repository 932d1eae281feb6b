import { hash } from 'node:crypto';
import type { RateLimits } from '@holdfast/contracts';
import { type Duration, type Environment, OptionsError, systemClock, systemRandom } from 'holdfast';
import {
  callback,
  count,
  duration,
  type Field,
  type FieldsOf,
  flag,
  group,
  list,
  type Rate,
  rate,
  type SettingsOf,
  shape,
  text,
  word,
} from 'holdfast/fields';
import { addressKey, clientAddress, type Peers } from '../address.ts';
import type { Exchange } from '../exchange.ts';
import { objectWith, peersField, readOptions } from '../option-fields.ts';
import type { FastPathRequest, Part } from '../part.ts';
import { problem, retryAfterHeader } from '../problem.ts';
import type { PlainResponse } from '../response.ts';
import { LimiterKeys } from './limiter-keys.ts';
import { LocalLimits } from './local-limits.ts';
import { legacyFields, RateFields, type RatePolicy, type Taken } from './rate-policy.ts';
import { SharedLimits } from './shared-limits.ts';

/** Reads a rate. Its number is also the default burst: `'100/m'` lets 100 requests pass at once. */
const quota: Field<Rate, { readonly ratePerMs: number; readonly times: number }> = {
  kind: 'a rate such as "100/m"',
  default: '100/m',
  read(value, path) {
    const ratePerMs = rate().read(value, path);
    if (ratePerMs === undefined) return undefined;
    return { ratePerMs, times: Math.max(1, Math.floor(Number.parseFloat(value as Rate))) };
  },
};

/** The options of `rateLimit`. */
export interface RateLimitOptions {
  /**
   * One limit, or several limits. A request passes only if all limits allow it. Default: one limit of
   * `100/m`.
   */
  limits?: LimitSpec | readonly LimitSpec[] | undefined;
  /**
   * Returns whose requests are counted together, for example a verified API key. `undefined`: the client's
   * address is used. Default: the address.
   */
  key?: ((exchange: Exchange) => string | undefined) | undefined;
  /** Whether the requests to each route are counted separately. Default: `true`. */
  perRoute?: boolean | undefined;
  /** Returns how many tokens a request takes. Default: 1. */
  cost?: ((exchange: Exchange) => number) | undefined;
  /**
   * The proxies in front of this server, such as `peers('10.0.0.0/8')`. Only their `X-Forwarded-For` header
   * is used to find a client's address. Default: none, and the address of the socket is used.
   */
  proxies?: Peers | undefined;
  /**
   * A store that several processes share, for example the `rateLimits` of `openRedis`. Default: the memory of
   * this process.
   */
  rateLimits?: RateLimits | undefined;
  /**
   * What to do while the store is unavailable. `share`: each process counts in its memory, with the limit
   * divided by `nodes`. `open`: all requests pass. `closed`: all requests are refused. Default: `share`.
   */
  whenUnavailable?: 'share' | 'open' | 'closed' | undefined;
  /** The number of processes that share the store. Default: `1`. */
  nodes?: number | undefined;
  /** How long a request waits for an answer of the store. Default: `25ms`. */
  timeout?: Duration | undefined;
  /**
   * Whether a process takes several tokens of a busy key in one call of the store, which saves calls.
   * Default: `false`.
   */
  lease?: boolean | LeaseSpec | undefined;
  /** The most keys in the memory of this process. Further keys share one limit. Default: `100000`. */
  keysMax?: number | undefined;
  /**
   * Which responses have `RateLimit` headers. `low`: when half of a limit is used up. `always`: all
   * responses. `refused`: only refusals. Default: `low`.
   */
  fields?: 'low' | 'always' | 'refused' | undefined;
  /** True: all requests pass. Requests that would have been refused are only counted. Default: `false`. */
  reportOnly?: boolean | undefined;
  /** Whether responses also have the headers `X-RateLimit-*`. Default: `false`. */
  legacy?: boolean | undefined;
  /** The longest `Retry-After`. Default: `1h`. */
  retryAfterCap?: Duration | undefined;
}

/** One limit of `rateLimit()`. */
export interface LimitSpec {
  /**
   * The name of this limit in response headers: letters, digits, `.`, `_` and `-`. Default: `default`; with
   * several limits, limit1 and so on.
   */
  name?: string | undefined;
  /** How many requests are allowed per second, minute or hour, such as `100/m`. Default: `100/m`. */
  rate?: Rate | undefined;
  /** How many requests may pass at once after a time without requests. Default: the number of `rate`. */
  burst?: number | undefined;
}

/** How a process takes several tokens of a key in advance from a shared store. */
export interface LeaseSpec {
  /** The most tokens of a key that a process takes in one call. Default: `20`. */
  tokensMax?: number | undefined;
  /** How long a process may use the tokens that it has taken in advance. Default: `100ms`. */
  for?: Duration | undefined;
}

const limitFields = {
  name: text(),
  rate: quota,
  burst: count(undefined, 1),
} satisfies FieldsOf<LimitSpec>;

export const rateLimitFields = {
  limits: list(shape(limitFields), [{}]),
  key: callback<(exchange: Exchange) => string | undefined>(),
  perRoute: flag(true),
  cost: callback<(exchange: Exchange) => number>(),
  proxies: peersField,
  rateLimits: objectWith<RateLimits>('RateLimits', 'take', 'rateLimits'),
  whenUnavailable: word('share', 'share', 'open', 'closed'),
  nodes: count(1, 1),
  timeout: duration('25ms'),
  lease: group({ tokensMax: count(20, 1), for: duration('100ms') }, false),
  keysMax: count(100_000, 2),
  fields: word('low', 'low', 'always', 'refused'),
  reportOnly: flag(false),
  legacy: flag(false),
  retryAfterCap: duration('1h'),
} satisfies FieldsOf<RateLimitOptions>;

/** The names that other libraries use, each with our option. */
const rateWord = "limits: { rate: '100/m' }";
const peerWords = {
  rate: rateWord,
  max: rateWord,
  limit: rateWord,
  window: rateWord,
  windowMs: rateWord,
  timeWindow: rateWord,
  burst: 'limits: { burst: 20 }',
  keyGenerator: 'key',
  store: 'rateLimits',
};

/** How many requests were allowed and refused, since the process started. */
export interface RateLimitCounts {
  allowed: number;
  refused: number;
  /** Requests that would have been refused without the option `reportOnly`. */
  wouldRefuse: number;
}

/** Limits how many requests a client may send per second, minute or hour. */
export interface RateLimitPart extends Part {
  readonly counts: RateLimitCounts;
  /** How many requests got no answer of the shared store in time. */
  readonly missed: number;
  /** The number of keys in the memory of this process. */
  readonly keys: number;
}

/** Longer keys are hashed. So each key needs little memory, and `keysMax` limits the memory of all keys. */
const keyLengthMax = 96;

/**
 * A part for `guard` that limits the requests of each client to each route. The default is 100 per minute.
 */
export function rateLimit(options: RateLimitOptions = {}, environment: RateEnvironment = {}): RateLimitPart {
  const settings = readOptions(
    rateLimitFields,
    options,
    'rateLimit',
    "{ limits: { rate: '100/m' } }",
    peerWords,
  );
  const { clock = systemClock, random = systemRandom } = environment;
  const { key: keyOf, cost: costOf, proxies, rateLimits, keysMax, reportOnly, legacy, perRoute } = settings;
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
   * Checks a request without an `Exchange` object, which is faster. False: the client is close to its limit,
   * so `enter` must decide.
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
        // A request that costs more tokens than the burst can never pass, so it gets no `Retry-After`.
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

/** The clock of the limits, and the random numbers for `Retry-After`. */
export interface RateEnvironment extends Environment {}

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

/** A cost of NaN would disable the limit of this key forever. */
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
