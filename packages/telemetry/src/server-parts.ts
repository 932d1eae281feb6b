import { OptionsError } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import type { Labels, Metric } from './metrics.ts';
import type { Family, Observation, Sample } from './observe.ts';

/**
 * The members of parts of `@holdfast/server` (such as `rateLimit()`) that the metrics use. Each kind of part
 * has only some of them.
 */
export interface ServerPartLike {
  readonly name: string;
  readonly counts?: object;
  /** The number of refused requests. Load shedding counts them by priority; a bulkhead has one number. */
  readonly refused?: Readonly<Record<string, number>> | number;
  /** The number of requests for which the shared store of a rate limit gave no answer in time. */
  readonly missed?: number;
  readonly inFlight?: number;
  readonly queued?: number;
  readonly limit?: number;
}

/** All metrics of server parts. A test compares the documentation with this table. */
export const serverMetrics = {
  rateLimit: {
    name: 'holdfast_server_rate_limit_total',
    type: 'counter',
    labels: ['server', 'outcome'],
    help: 'Requests at the rate limit: allowed, refused, would_refuse (with reportOnly).',
  },
  missed: {
    name: 'holdfast_server_rate_limit_missed_total',
    type: 'counter',
    labels: ['server'],
    help: 'Requests for which the shared store of the rate limit gave no answer in time.',
  },
  shed: {
    name: 'holdfast_server_shed_total',
    type: 'counter',
    labels: ['server', 'priority'],
    help: 'Requests that were refused because the server was overloaded, by priority.',
  },
  bulkhead: {
    name: 'holdfast_server_bulkhead_refused_total',
    type: 'counter',
    labels: ['server'],
    help: 'Requests that the bulkhead refused, at once or after a wait.',
  },
  deadline: {
    name: 'holdfast_server_timed_out_total',
    type: 'counter',
    labels: ['server', 'when'],
    help: 'Requests whose time was over: on_arrival (the handler was not called) or in_handler.',
  },
  idempotency: {
    name: 'holdfast_server_idempotency_total',
    type: 'counter',
    labels: ['server', 'outcome'],
    help: 'Requests with an idempotency key: executed, replayed, refused, failed_closed (no store), unrecorded.',
  },
  degraded: {
    name: 'holdfast_server_degraded_total',
    type: 'counter',
    labels: ['server', 'how'],
    help: 'Failed responses that were replaced: stale (the last good response) or fallback.',
  },
  inFlight: {
    name: 'holdfast_server_in_flight',
    type: 'gauge',
    labels: ['server', 'part'],
    help: 'Requests in flight, as the part counts them.',
  },
  queued: {
    name: 'holdfast_server_queued',
    type: 'gauge',
    labels: ['server', 'part'],
    help: 'Requests that wait to be admitted.',
  },
  limit: {
    name: 'holdfast_server_limit',
    type: 'gauge',
    labels: ['server', 'part'],
    help: 'The most requests in flight that the part admits now.',
  },
} as const satisfies Record<string, Metric>;

type Key = keyof typeof serverMetrics;

/** The options of `observeServer`. */
export interface ServerObservationOptions {
  /** The value of the label `server`, to tell several servers of a process apart. Default: `server`. */
  readonly name?: string | undefined;
}

/**
 * Returns the metrics of the parts of a `guard`. They count the requests that were limited, shed, replayed,
 * timed out or degraded. Gauges show the requests in flight and the current limits.
 */
export function observeServer(
  parts: readonly ServerPartLike[],
  options: ServerObservationOptions = {},
): Observation {
  assertKnownFields({ name: true }, options);
  const { name: server = 'server' } = options;
  if (!Array.isArray(parts) || parts.some((part) => typeof part?.name !== 'string'))
    throw new OptionsError('parts', parts, 'a list of parts such as rateLimit()');
  let watched: readonly ServerPartLike[] = parts;

  return {
    snapshot() {
      const samples = new Map<Key, Map<string, Sample>>();
      const put = (key: Key, labels: Labels, value: number | undefined) => {
        if (value === undefined) return;
        const kept = samples.get(key) ?? new Map<string, Sample>();
        const all = { server, ...labels };
        const identity = JSON.stringify(all);
        kept.set(identity, { labels: all, value: (kept.get(identity)?.value ?? 0) + value });
        samples.set(key, kept);
      };
      for (const part of watched) readPart(part, put);
      return Object.entries(serverMetrics).map(
        ([key, metric]): Family => ({ ...metric, samples: [...(samples.get(key as Key)?.values() ?? [])] }),
      );
    },
    stop() {
      watched = [];
    },
  };
}

type Put = (key: Key, labels: Labels, value: number | undefined) => void;

/** The metric for the `counts` of each part, and the label that holds the name of each count. */
const countedAs: Readonly<Record<string, readonly [Key, label: string]>> = {
  rateLimit: ['rateLimit', 'outcome'],
  idempotency: ['idempotency', 'outcome'],
  degrade: ['degraded', 'how'],
  deadline: ['deadline', 'when'],
};

function readPart(
  { name, counts = {}, refused, missed, inFlight, queued, limit }: ServerPartLike,
  put: Put,
): void {
  const [key, label] = countedAs[name] ?? [];
  if (key && label) {
    for (const [outcome, count] of Object.entries(counts))
      put(key, { [label]: snakeCase(outcome) }, Number(count));
  }
  if (typeof refused === 'number') put('bulkhead', {}, refused);
  else for (const [priority, count] of Object.entries(refused ?? {})) put('shed', { priority }, count);
  put('missed', {}, missed);
  put('inFlight', { part: name }, inFlight);
  put('queued', { part: name }, queued);
  put('limit', { part: name }, limit);
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
