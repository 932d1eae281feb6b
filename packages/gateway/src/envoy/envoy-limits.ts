import type {
  GatewayConfig,
  RateLimitingConfig,
  RouteConfig,
  UpstreamConfig,
} from '../file/gateway-config.ts';
import { extension, type Resource, seconds } from './resource.ts';

/** Never used up: each limit of the file has a bucket of its own. */
const unlimited = { max_tokens: 4_000_000_000, tokens_per_fill: 4_000_000_000, fill_interval: '1s' };

/** The most callers that are distinguished at a time; the least recent is forgotten. */
const callersMax = 100_000;

interface Limit {
  readonly name: string;
  readonly config: RateLimitingConfig;
}

/** The filter with a token bucket for each rate limit of the file. Undefined: the file has none. */
export function limitFilter(config: GatewayConfig): Resource | undefined {
  const limits = enforced([
    ...config.upstreams.map((upstream) => limitOfUpstream(upstream)),
    ...config.routes.map((route) => limitOfRoute(route)),
  ]);
  if (limits.length === 0) return undefined;
  return extension('limits', 'filters.http.local_ratelimit.v3.LocalRateLimit', {
    stat_prefix: 'limits',
    token_bucket: unlimited,
    always_consume_default_token_bucket: false,
    filter_enabled: everyRequest,
    filter_enforced: everyRequest,
    max_dynamic_descriptors: callersMax,
    descriptors: limits.map(({ name, config: limit }) => ({
      entries: [{ key: 'limit', value: name }, ...(limit.key === 'all' ? [] : [{ key: callerKey(limit) }])],
      token_bucket: bucket(limit),
    })),
  });
}

/** Which limits a request of this route counts for. */
export function routeLimits(route: RouteConfig, upstream: UpstreamConfig): Resource[] {
  return enforced([limitOfRoute(route), limitOfUpstream(upstream)]).map(({ name, config: { key } }) => ({
    actions: [
      { generic_key: { descriptor_key: 'limit', descriptor_value: name } },
      ...(key === 'all' ? [] : [callerAction(key)]),
    ],
  }));
}

function callerAction(key: RateLimitingConfig['key']): Resource {
  return key === 'client'
    ? { masked_remote_address: { v4_prefix_mask_len: 32, v6_prefix_mask_len: 64 } }
    : { request_headers: { header_name: key.slice(7), descriptor_key: 'caller' } };
}

function limitOfUpstream({ name, protections }: UpstreamConfig): Limit | undefined {
  return protections.rateLimiting
    ? { name: `upstream ${name}`, config: protections.rateLimiting }
    : undefined;
}

function limitOfRoute({ name, protections }: RouteConfig): Limit | undefined {
  return protections.rateLimiting ? { name: `route ${name}`, config: protections.rateLimiting } : undefined;
}

/** A limit that only counts is left out: see the feature `reportOnly`. */
function enforced(limits: readonly (Limit | undefined)[]): Limit[] {
  return limits.filter((each): each is Limit => each !== undefined && !each.config.reportOnly);
}

const everyRequest = { default_value: { numerator: 100, denominator: 'HUNDRED' } };

/** Envoy fills whole tokens: a low rate is one token after each interval, and a high one is rounded. */
function bucket({ requestsPerSecond, burstSize }: RateLimitingConfig): Resource {
  return requestsPerSecond < 10
    ? { max_tokens: burstSize, tokens_per_fill: 1, fill_interval: seconds(1000 / requestsPerSecond) }
    : { max_tokens: burstSize, tokens_per_fill: Math.round(requestsPerSecond), fill_interval: '1s' };
}

/** Under this name Envoy knows the caller; an entry without a value has a bucket for each caller. */
function callerKey({ key }: RateLimitingConfig): string {
  return key === 'client' ? 'masked_remote_address' : 'caller';
}
