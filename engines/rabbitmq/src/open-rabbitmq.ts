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
   * The address of the server with user, password and virtual host, such as `amqp://user:password@localhost:5672/orders`, with
   * TLS `amqps://…`; or those of the servers of a cluster, which are tried in turn. Required.
   */
  readonly url: string | readonly string[];
  /**
   * An engine beside RabbitMQ, such as SQLite or PostgreSQL. It keeps retries, parked events, controls and marks, and the
   * order of keys. Without it, retries stay in RabbitMQ, and parked events go to the topic `<topic>.dlq`. `close` does not
   * close it. Default: none.
   */
  readonly store?: Engine | undefined;
  /** More options of the client's sockets, such as `ca`, `cert` and `key` for TLS. Default: none. */
  readonly connection?: SocketOptions | undefined;
  /**
   * The start of the names of queues and exchanges that all topics share, such as `holdfast.delay.3`. Letters, digits and
   * hyphens. Default: `holdfast`.
   */
  readonly prefix?: string | undefined;
  /**
   * How many servers of a cluster keep each event, from 1 to 9. For queues that are created. Default: as the servers are
   * configured, three unless told otherwise.
   */
  readonly replicas?: number | undefined;
  /**
   * After some two times of this without a sign of its process, the server delivers an event to another one. In whole seconds.
   * Default: `15s`.
   */
  readonly heartbeat?: Duration | undefined;
  /** How long an answer of the server may take, also while an alarm stops publishers. Default: `10s`. */
  readonly timeout?: Duration | undefined;
  /** The name of the dead-letter topic is the name of the topic and this text. Not used with a store. Default: `.dlq`. */
  readonly parkedSuffix?: string | undefined;
  /** The most events of a topic that wait in this process for a handler. Default: `2000`. */
  readonly prefetchMax?: number | undefined;
  /** Limits of events. Headers of an event have at most 32 KiB. Default: payloads of 16 MiB, headers of 16 KiB. */
  readonly limits?: SizeLimitOptions | undefined;
  /** The clock of waits and limits. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The source of chance. Default: the system's. */
  readonly random?: Random | undefined;
}

const known: Readonly<Record<keyof RabbitmqOptions, true>> = {
  ...{ url: true, store: true, connection: true, prefix: true, replicas: true, heartbeat: true },
  ...{ timeout: true, parkedSuffix: true, prefetchMax: true, limits: true, clock: true, random: true },
};

/** The largest payload is what RabbitMQ 4 takes unless it is told otherwise. */
export const rabbitmqLimits: SizeLimits = {
  payloadBytesMax: 16 * 1024 * 1024,
  headersBytesMax: 16 * 1024,
  batchMax: 10_000,
  keyLengthMax: 512,
};

/** All headers of a message share 60 kB, those about its retries included. */
const headersBytesLimit = 32 * 1024;

/** Opens an engine for events on RabbitMQ 3.10 or later. It connects with the first call, and reconnects by itself. */
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
      // IPv6 addresses are in brackets.
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port) || (protocol === 'amqps:' ? 5671 : 5672),
      username: decodeURIComponent(username) || 'guest',
      password: decodeURIComponent(password) || 'guest',
      vhost: decodeURIComponent(pathname.slice(1)) || '/',
      heartbeat,
    };
  });
}

/** The address may have a password, so it is not in the message. */
function urlError(url: unknown): OptionsError {
  const shown = typeof url === 'string' ? url.replace(/\/\/[^/]*@/, '//…@') : url;
  return new OptionsError('url', shown, 'an address such as "amqp://localhost:5672", or a list of those');
}

function whole(path: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new OptionsError(path, value, `a whole number from ${least} to ${most}`);
}
