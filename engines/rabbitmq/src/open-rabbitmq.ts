import { type Engine, readLimits, type SizeLimitOptions, type SizeLimits } from '@holdfast/contracts';
import {
  type CarrierEngine,
  type CarrierOptions,
  carrierDefaults,
  carrierEngine,
} from '@holdfast/contracts/carrier';
import type { Options, SocketOptions } from 'amqplib';
import {
  type Clock,
  type Duration,
  durationMs,
  OptionsError,
  type Random,
  systemClock,
  systemRandom,
} from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { rabbitmqCarrier } from './rabbitmq-carrier.ts';

/** The options of `openRabbitmq`. Only `url` is required. */
export interface RabbitmqOptions {
  /**
   * The address of the server with user, password and virtual host, such as
   * `amqp://user:password@localhost:5672/orders`; `amqps://…` means TLS. For a cluster, give a list of
   * addresses: they are tried one after the other. Required.
   */
  readonly url: string | readonly string[];
  /**
   * A second engine, such as SQLite or PostgreSQL. It stores retries, parked events, controls and
   * deduplication records, and keeps the order of keys. Without it, retries stay in RabbitMQ, and parked
   * events go to the topic `<topic>.dlq`. `close` does not close the store. Default: none.
   */
  readonly store?: Engine | undefined;
  /** More options for the socket of the connection, such as `ca`, `cert` and `key` for TLS. Default: none. */
  readonly connection?: SocketOptions | undefined;
  /**
   * The prefix of the queues and exchanges that all topics share, such as `holdfast.delay.3`. It consists of
   * letters, digits and hyphens. Default: `holdfast`.
   */
  readonly prefix?: string | undefined;
  /**
   * How many servers of a cluster keep a copy of each event, from 1 to 9. It applies to queues that are
   * created from now on. Default: as the servers are configured, three unless told otherwise.
   */
  readonly replicas?: number | undefined;
  /**
   * If a process sends nothing for about twice this time, the server closes its connection. Another process
   * then gets its unfinished events. In whole seconds. Default: `15s`.
   */
  readonly heartbeat?: Duration | undefined;
  /**
   * How long to wait for an answer of the server, also while a memory or disk alarm blocks publishers.
   * Default: `10s`.
   */
  readonly timeout?: Duration | undefined;
  /**
   * The suffix that makes the name of a dead-letter topic: `orders.dlq`. Not used with a store. Default:
   * `.dlq`.
   */
  readonly parkedSuffix?: string | undefined;
  /**
   * The most events of a topic that this process fetches in advance, before a handler is free. Default:
   * `2000`.
   */
  readonly prefetchMax?: number | undefined;
  /**
   * Size limits of events. The limit of headers is at most 32 KiB. Default: payloads of 16 MiB, headers of 16
   * KiB.
   */
  readonly limits?: SizeLimitOptions | undefined;
  /** The clock for delays and timeouts; tests pass a fake clock. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The source of random numbers. Default: the system's. */
  readonly random?: Random | undefined;
}

const known: Readonly<Record<keyof RabbitmqOptions, true>> = {
  ...{ url: true, store: true, connection: true, prefix: true, replicas: true, heartbeat: true },
  ...{ timeout: true, parkedSuffix: true, prefetchMax: true, limits: true, clock: true, random: true },
};

/** 16 MiB is the largest message that RabbitMQ 4 accepts with its default settings. */
export const rabbitmqLimits: SizeLimits = {
  payloadBytesMax: 16 * 1024 * 1024,
  headersBytesMax: 16 * 1024,
  batchMax: 10_000,
  keyLengthMax: 512,
};

/**
 * The largest value that the option `limits.headersBytesMax` may have. All headers of a message may have 60
 * kB together, and our own headers about retries need the rest.
 */
const headersBytesLimit = 32 * 1024;

/**
 * Opens an engine on RabbitMQ 3.10 or later. It connects with the first call, and reconnects automatically.
 */
export function openRabbitmq(options: RabbitmqOptions): CarrierEngine {
  const { carrier, rest } = readRabbitmqOptions(options);
  return carrierEngine(rabbitmqCarrier(carrier), { ...rest, durability: 'power' });
}

export function readRabbitmqOptions(options: RabbitmqOptions): {
  readonly carrier: Parameters<typeof rabbitmqCarrier>[0];
  readonly rest: CarrierOptions;
} {
  assertKnownFields(known, options);
  const { clock = systemClock, random = systemRandom, store, parkedSuffix, prefix = 'holdfast' } = options;
  if (typeof prefix !== 'string' || !/^[A-Za-z0-9-]{1,50}$/.test(prefix))
    throw new OptionsError('prefix', prefix, 'a text of at most 50 letters, digits and hyphens');
  if (parkedSuffix !== undefined && (typeof parkedSuffix !== 'string' || parkedSuffix === ''))
    throw new OptionsError('parkedSuffix', parkedSuffix, 'a text that is not empty');
  const limits = readLimits(options.limits, rabbitmqLimits);
  if (limits.headersBytesMax > headersBytesLimit)
    throw new OptionsError('limits.headersBytesMax', limits.headersBytesMax, `at most ${headersBytesLimit}`);
  const heartbeatMs = durationMs(options.heartbeat ?? '15s', 'heartbeat');
  if (!(heartbeatMs >= 1000 && heartbeatMs <= 600_000 && heartbeatMs % 1000 === 0))
    throw new OptionsError('heartbeat', options.heartbeat, 'whole seconds, from 1s to 10m');
  const timeoutMs = durationMs(options.timeout ?? '10s', 'timeout');
  if (!(timeoutMs >= 1 && timeoutMs < Infinity))
    throw new OptionsError('timeout', options.timeout, 'a time of at least 1 ms');
  const servers = serversOf(options.url, heartbeatMs / 1000);
  const prefetchMax = whole('prefetchMax', options.prefetchMax ?? carrierDefaults.prefetchMax, 1, 50_000);
  const carrier = {
    ...{ servers, clock, random, limits, prefix, prefetchMax, timeoutMs },
    vhost: servers[0]!.vhost!,
    socket: { clientProperties: { connection_name: 'holdfast' }, ...options.connection },
    replicas: options.replicas === undefined ? undefined : whole('replicas', options.replicas, 1, 9),
    hasStore: store !== undefined,
  };
  return { carrier, rest: { store, parkedSuffix, prefetchMax, clock, random } };
}

type Server = Options.Connect & { readonly hostname: string };

function serversOf(url: unknown, heartbeat: number): Server[] {
  const urls = typeof url === 'string' ? [url] : url;
  if (!Array.isArray(urls) || urls.length === 0) throw urlError(url);
  return urls.map((each) => {
    const isAddress = typeof each === 'string' && /^amqps?:\/\/[^/\s]+/.test(each) && URL.canParse(each);
    if (!isAddress) throw urlError(each);
    const { protocol, hostname, port, username, password, pathname } = new URL(each);
    return {
      protocol: protocol.slice(0, -1),
      // A URL has brackets around an IPv6 address. The client wants the address without brackets.
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port) || (protocol === 'amqps:' ? 5671 : 5672),
      username: decodeURIComponent(username) || 'guest',
      password: decodeURIComponent(password) || 'guest',
      vhost: decodeURIComponent(pathname.slice(1)) || '/',
      heartbeat,
    };
  });
}

/** The error message shows the address without the user and the password. */
function urlError(url: unknown): OptionsError {
  const shown = typeof url === 'string' ? url.replace(/\/\/[^/]*@/, '//…@') : url;
  return new OptionsError('url', shown, 'an address such as "amqp://localhost:5672", or a list of those');
}

function whole(path: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new OptionsError(path, value, `a whole number from ${least} to ${most}`);
}
