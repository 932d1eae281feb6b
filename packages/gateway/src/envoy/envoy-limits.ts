import type {
  GatewayConfig,
  RateLimitingConfig,
  RouteConfig,
  UpstreamConfig,
} from '../file/gateway-config.ts';
import { extension, type Resource, seconds } from './resource.ts';

/**
 * Envoy requires a default bucket. This one is never empty, because each limit of the file has its own
 * bucket.
 */
const unlimited = { max_tokens: 4_000_000_000, tokens_per_fill: 4_000_000_000, fill_interval: '1s' };

/**
 * The most callers that Envoy counts separately. Above this number, it forgets the least recently used
 * caller.
 */
const callersMax = 100_000;

interface Limit {
  readonly name: string;
  readonly config: RateLimitingConfig;
}

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

/** Envoy can not count without rejecting, so limits with `reportOnly` are removed. */
function enforced(limits: readonly (Limit | undefined)[]): Limit[] {
  return limits.filter((each): each is Limit => each !== undefined && !each.config.reportOnly);
}

const everyRequest = { default_value: { numerator: 100, denominator: 'HUNDRED' } };

/** Envoy adds only whole tokens. So a rate below 10 per second becomes one token per interval. */
function bucket({ requestsPerSecond, burstSize }: RateLimitingConfig): Resource {
  return requestsPerSecond < 10
    ? { max_tokens: burstSize, tokens_per_fill: 1, fill_interval: seconds(1000 / requestsPerSecond) }
    : { max_tokens: burstSize, tokens_per_fill: Math.round(requestsPerSecond), fill_interval: '1s' };
}

/**
 * Returns the name of a descriptor entry. An entry with this name and no value gives each caller its own
 * bucket.
 */
function callerKey({ key }: RateLimitingConfig): string {
  return key === 'client' ? 'masked_remote_address' : 'caller';
}
