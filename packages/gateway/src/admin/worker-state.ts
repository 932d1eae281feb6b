import type { BulkheadPart, Part, RateLimitPart, ShedPart } from '@holdfast/server';
import type { BreakerState, TargetState } from 'holdfast';
import { policies } from 'holdfast';
import type { GatewayProcess } from '../proxy/gateway-process.ts';
import type { RouteCounts } from '../route/route-counts.ts';
import type { Upstream } from '../upstream/upstream.ts';

/** The state of one process of a gateway, as plain JSON. */
export interface WorkerState {
  readonly pid: number;
  /** When the process started, epoch ms. */
  readonly startedAt: number;
  readonly isDraining: boolean;
  readonly inFlight: number;
  readonly routes: readonly RouteState[];
  /** The counts of requests that no route matches. */
  readonly unmatched: RouteState;
  readonly upstreams: readonly UpstreamState[];
  readonly protections: readonly ProtectionState[];
  readonly accessLogDropped: number;
}

/** The counts of one route since the worker started. */
export interface RouteState {
  readonly name: string;
  readonly upstream: string;
  readonly requests: number;
  readonly inFlight: number;
  /**
   * Responses by status class, such as `2xx`. `aborted`: the client closed the connection before the
   * response.
   */
  readonly statuses: Readonly<Record<string, number>>;
  readonly retries: number;
  readonly refused: number;
  readonly fallbacks: number;
  readonly bytes: number;
  readonly durationSum: number;
  /**
   * A histogram: the number of requests in each interval between two bounds of `durationBounds` (seconds).
   */
  readonly durations: readonly number[];
}

/** An upstream with its instances and policies, as one worker sees it. */
export interface UpstreamState {
  readonly name: string;
  readonly insecure: boolean;
  readonly policies: readonly PolicyStateOfUpstream[];
  readonly instances: readonly InstanceState[];
}

export interface PolicyStateOfUpstream {
  /** The name of the policy in the registry of the package `holdfast`. */
  readonly name: string;
  readonly operations: number;
  readonly attempts: number;
  readonly tokens: number | null;
  readonly stops: Readonly<Record<string, number>>;
  readonly targets: readonly TargetState[];
}

/** One server behind the gateway, as one worker sees it. */
export interface InstanceState {
  readonly name: string;
  readonly zone: string | null;
  readonly weight: number;
  readonly isHealthy: boolean;
  readonly isDraining: boolean;
  readonly isEjected: boolean;
  readonly inFlight: number;
  /** Null: the instance has no breaker. */
  readonly breaker: BreakerState | null;
  readonly forced: 'open' | 'closed' | null;
  readonly lastCheckError: string | null;
}

/**
 * The state of a rate limit, bulkhead or load shedder. `inFlight` and `queued` are null where they do not
 * apply.
 */
export interface ProtectionState {
  /** The owner and the kind: `upstream orders bulkhead`. */
  readonly name: string;
  readonly kind: string;
  readonly refused: number;
  readonly inFlight: number | null;
  readonly queued: number | null;
}

export function workerState(gateway: GatewayProcess): WorkerState {
  return {
    pid: process.pid,
    startedAt: gateway.startedAt,
    isDraining: gateway.isDraining,
    inFlight: gateway.inFlight,
    routes: gateway.routes.map(({ config, counts }) => routeState(config.name, config.upstream, counts)),
    unmatched: routeState('', '', gateway.unmatched),
    upstreams: [...gateway.upstreams.values()].map((upstream) =>
      upstreamState(upstream, gateway.clock.now()),
    ),
    protections: [...gateway.parts].map(([name, part]) => protectionState(name, part)),
    accessLogDropped: gateway.accessLog?.dropped ?? 0,
  };
}

function routeState(name: string, upstream: string, counts: RouteCounts): RouteState {
  const [aborted = 0, ...classes] = counts.statuses;
  const statuses = Object.fromEntries(classes.map((count, index) => [`${index + 1}xx`, count]));
  const { requests, inFlight, retries, refused, fallbacks, bytes, durationSum, durations } = counts;
  return {
    name,
    upstream,
    requests,
    inFlight,
    statuses: { ...statuses, aborted },
    retries,
    refused,
    fallbacks,
    bytes,
    durationSum,
    durations: [...durations],
  };
}

function upstreamState(upstream: Upstream, now: number): UpstreamState {
  const registered = policies();
  return {
    name: upstream.config.name,
    insecure: upstream.config.tls.insecureSkipVerify,
    policies: upstream.policies.map((policy) => {
      const { operations, attempts, stops } = policy.policy.counters;
      return {
        name: policy.name,
        operations,
        attempts,
        tokens: policy.pool.budget?.tokens(now) ?? null,
        stops: { ...stops },
        targets: registered.find(({ name }) => name === policy.name)?.targets ?? [],
      };
    }),
    instances: upstream.instances.map((instance) => {
      const member = upstream.base.memberOf(instance, undefined);
      const { breaker, health } = member;
      return {
        name: instance.name,
        zone: instance.zone ?? null,
        weight: instance.weight,
        isHealthy: instance.isHealthy,
        isDraining: instance.isDraining,
        isEjected: health.ejectedUntil > now,
        inFlight: upstream.policies.reduce(
          (sum, policy) => sum + policy.memberOf(instance, undefined).inFlight,
          0,
        ),
        breaker: breaker?.state(now) ?? null,
        forced: breaker?.forced ?? null,
        lastCheckError: instance.lastCheckError ?? null,
      };
    }),
  };
}

function protectionState(key: string, part: Part): ProtectionState {
  const name = key.slice(0, key.search(/ [[{]/));
  const { counts } = part as Partial<RateLimitPart>;
  const { refused } = part as Partial<BulkheadPart>;
  const { inFlight, queued } = part as Partial<ShedPart>;
  const byPriority = part as Partial<ShedPart>;
  const all =
    part.name === 'shed'
      ? Object.values(byPriority.refused ?? {}).reduce((sum, count) => sum + count, 0)
      : refused;
  return {
    name,
    kind: part.name,
    refused: counts?.refused ?? (all as number | undefined) ?? 0,
    inFlight: inFlight ?? null,
    queued: queued ?? null,
  };
}
