import { type Engine, readLimits, type SizeLimitOptions, type SizeLimits } from '@holdfast/contracts';
import { type CarrierEngine, type CarrierOptions, carrierEngine } from '@holdfast/contracts/carrier';
import type { NodeConnectionOptions } from '@nats-io/transport-node';
import { type Clock, type Duration, durationMs, OptionsError, type Random, systemClock } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { natsCarrier } from './nats-carrier.ts';

/** The options of `openNats`. Only `url` is required. */
export interface NatsOptions {
  /**
   * The address of the server, such as `nats://localhost:4222`, or a list of the addresses of a cluster.
   * Required.
   */
  readonly url: string | readonly string[];
  /**
   * A second engine, such as SQLite or PostgreSQL. It stores retries, parked events, controls and
   * deduplication records, and keeps the order of keys. Without it, retries stay in NATS, and parked events
   * go to the topic `<topic>.dlq`. `close` does not close the store. Default: none.
   */
  readonly store?: Engine | undefined;
  /** More options of the client, such as TLS and credentials. Default: none. */
  readonly connection?: NodeConnectionOptions | undefined;
  /**
   * The prefix of the names of all streams and subjects: letters, digits and hyphens. Default: `holdfast`.
   */
  readonly prefix?: string | undefined;
  /**
   * How many servers of a cluster keep a copy of each event, from 1 to 5. It applies to new streams. Default:
   * `1`.
   */
  readonly replicas?: number | undefined;
  /**
   * How many events of a topic with key order are handled at the same time, in all processes together. It
   * applies to new topics. Default: `32`.
   */
  readonly partitions?: number | undefined;
  /**
   * If a process does not extend its hold on an event for this time, NATS delivers it to another process.
   * Default: `30s`.
   */
  readonly ackWait?: Duration | undefined;
  /**
   * How long NATS remembers the id of an event. An event with the same id is not stored again. Default: `2m`.
   */
  readonly duplicateWindow?: Duration | undefined;
  /** How long to wait for an answer of the server. Default: `5s`. */
  readonly timeout?: Duration | undefined;
  /**
   * The suffix that makes the name of a dead-letter topic: `orders.dlq`. Not used with a store. Default:
   * `.dlq`.
   */
  readonly parkedSuffix?: string | undefined;
  /**
   * The most events of a topic that this process fetches in advance, before a handler is free. Retries have a
   * limit of the same size. Default: `2000`.
   */
  readonly prefetchMax?: number | undefined;
  /**
   * Size limits of events. NATS refuses messages above 1 MiB, including headers. Default: payloads of 900 kB.
   */
  readonly limits?: SizeLimitOptions | undefined;
  /** The clock for delays and timeouts; tests pass a fake clock. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The source of random numbers. Default: the system's. */
  readonly random?: Random | undefined;
}

const known: Readonly<Record<keyof NatsOptions, true>> = {
  ...{
    url: true,
    store: true,
    connection: true,
    prefix: true,
    replicas: true,
    partitions: true,
    ackWait: true,
  },
  ...{ duplicateWindow: true, timeout: true, parkedSuffix: true, prefetchMax: true, limits: true },
  ...{ clock: true, random: true },
};

/**
 * The largest events: 900,000 bytes of payload and 16 KiB of headers. A NATS server accepts messages up to 1
 * MiB by default.
 */
export const natsLimits: SizeLimits = {
  payloadBytesMax: 900_000,
  headersBytesMax: 16 * 1024,
  batchMax: 10_000,
  keyLengthMax: 512,
};

/**
 * Opens an engine on NATS JetStream 2.9 or later. It connects with the first call, and reconnects
 * automatically.
 */
export function openNats(options: NatsOptions): CarrierEngine {
  const { carrier, rest } = readNatsOptions(options);
  return carrierEngine(natsCarrier(carrier), { ...rest, durability: 'process' });
}

export function readNatsOptions(options: NatsOptions): {
  readonly carrier: Parameters<typeof natsCarrier>[0];
  readonly rest: CarrierOptions;
} {
  assertKnownFields(known, options);
  const { clock = systemClock, random, store, parkedSuffix, prefetchMax, prefix = 'holdfast' } = options;
  if (typeof prefix !== 'string' || !/^[A-Za-z0-9-]+$/.test(prefix))
    throw new OptionsError('prefix', prefix, 'a text of letters, digits and hyphens');
  if (parkedSuffix !== undefined && (typeof parkedSuffix !== 'string' || parkedSuffix === ''))
    throw new OptionsError('parkedSuffix', parkedSuffix, 'a text that is not empty');
  const ackWaitMs = span('ackWait', options.ackWait ?? '30s', 100);
  const carrier = {
    connection: {
      ...{
        servers: serversOf(options.url),
        name: 'holdfast',
        maxReconnectAttempts: -1,
        reconnectTimeWait: 250,
      },
      ...options.connection,
    },
    clock,
    limits: readLimits(options.limits, natsLimits),
    prefix,
    replicas: whole('replicas', options.replicas ?? 1, 1, 5),
    partitions: whole('partitions', options.partitions ?? 32, 1, 256),
    ackWaitMs,
    duplicateWindowMs: span('duplicateWindow', options.duplicateWindow ?? '2m', 100),
    timeoutMs: span('timeout', options.timeout ?? '5s', 1),
  };
  const most = prefetchMax === undefined ? undefined : whole('prefetchMax', prefetchMax, 1, 100_000);
  return { carrier, rest: { store, parkedSuffix, prefetchMax: most, idleMs: ackWaitMs, clock, random } };
}

function serversOf(url: string | readonly string[]): string[] {
  const servers = typeof url === 'string' ? [url] : url;
  const isAddress = (each: unknown) => typeof each === 'string' && /^(nats|tls):\/\/[^/\s]+/.test(each);
  if (!Array.isArray(servers) || servers.length === 0 || !servers.every(isAddress))
    throw new OptionsError('url', url, 'an address such as "nats://localhost:4222", or a list of those');
  return [...servers];
}

function whole(path: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new OptionsError(path, value, `a whole number from ${least} to ${most}`);
}

function span(path: string, value: Duration, leastMs: number): number {
  const ms = durationMs(value, path);
  if (ms >= leastMs && ms < Infinity) return ms;
  throw new OptionsError(path, value, `a time of at least ${leastMs} ms`);
}
