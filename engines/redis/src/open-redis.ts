import {
  type Broker,
  type Controls,
  defaultSizeLimits,
  type Engine,
  type Ledger,
  type RateLimits,
  readLimits,
  type SizeLimitOptions,
} from '@holdfast/contracts';
import { OptionsError } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { Redis } from 'ioredis';
import { redisBroker } from './broker/broker.ts';
import { redisFeatures } from './features.ts';
import { redisLedger } from './ledger.ts';
import { redisRateLimits } from './rate-limits.ts';
import type { RedisClient } from './script-runner.ts';

/** The options of `openRedis`. Either `url` or `client` is required. */
export interface RedisOptions {
  /** The address of the server, such as `redis://localhost:6379/0`. Give either `url` or `client`. Default: none. */
  readonly url?: string | undefined;
  /** An ioredis `Redis` or `Cluster` of your application. `close` does not close it. Default: a client for `url`. */
  readonly client?: RedisClient | undefined;
  /** The prefix of all Redis keys. Default: `holdfast:`. */
  readonly prefix?: string | undefined;
  /** How long it is remembered that an event was handled, in ms. Default: `5184000000` (60 days). */
  readonly keepMarksMs?: number | undefined;
  /**
   * A second engine, such as SQLite or PostgreSQL, that stores parked events and the audit log. `close` does
   * not close it. Default: none; parked events go to the dead-letter topic.
   */
  readonly store?: Engine | undefined;
  /** The largest events and batches. Default: payloads of 1 MiB, headers of 16 KiB, batches of 10,000, keys of 512. */
  readonly limits?: SizeLimitOptions | undefined;
  /** Called when the connection is lost. The client reconnects automatically. Default: none. */
  readonly onError?: ((error: Error) => void) | undefined;
}

const known: Readonly<Record<keyof RedisOptions, true>> = {
  url: true,
  client: true,
  prefix: true,
  keepMarksMs: true,
  store: true,
  limits: true,
  onError: true,
};

/**
 * The engine on Redis. Parked events, the audit log and the journal come from the option `store`. Without
 * this option, the engine has none of the three.
 */
export interface RedisEngine extends Engine<never> {
  readonly broker: Broker<never>;
  readonly controls: Controls;
  readonly ledger: Ledger<never>;
  readonly rateLimits: RateLimits;
  readonly client: RedisClient;
}

const defaultKeepMarksMs = 60 * 24 * 60 * 60 * 1000;

/** A call rejects after this many failed attempts to reconnect. */
const reconnectsMax = 20;
const reconnectMs = 50;
const reconnectMaxMs = 500;

/**
 * Opens an engine for events, idempotency keys and rate limits on Redis 6.2 or later. It reconnects
 * automatically.
 */
export function openRedis(options: RedisOptions): RedisEngine {
  assertKnownFields(known, options);
  const { prefix = 'holdfast:', keepMarksMs = defaultKeepMarksMs, store, onError = () => {} } = options;
  if (store !== undefined && !store?.triage)
    throw new OptionsError(
      'store',
      store?.name ?? store,
      'an engine with a triage, such as SQLite or PostgreSQL',
    );
  const limits = readLimits(options.limits, defaultSizeLimits);
  const client = options.client ?? connect(options);
  const features = redisFeatures({ isCluster: client.isCluster, hasStore: store !== undefined });
  const broker = redisBroker(client, {
    ...{ prefix, keepMarksMs, limits, features, onError },
    ...{ triage: store?.triage, audit: store?.audit },
  });
  return {
    name: 'redis',
    durability: 'process',
    features,
    client,
    broker,
    controls: broker.controls,
    ledger: redisLedger(client, { prefix, keepMarksMs }),
    rateLimits: redisRateLimits(client, { prefix }),
    ...(store?.triage && { triage: store.triage }),
    ...(store?.audit && { audit: store.audit }),
    ...(store?.journal && { journal: store.journal as NonNullable<RedisEngine['journal']> }),
    ...(store?.presence && { presence: store.presence }),

    /** Removes expired rows of the store. Redis deletes expired keys itself. */
    async sweep(limit) {
      return (await store?.sweep(limit)) ?? 0;
    },

    async close() {
      broker.close();
      if (!options.client) client.disconnect();
    },
  };
}

function connect({ url, onError = () => {} }: RedisOptions): Redis {
  if (url === undefined)
    throw new OptionsError('url', url, 'an address such as "redis://localhost:6379", or a client');
  const client = new Redis(url, {
    maxRetriesPerRequest: reconnectsMax,
    retryStrategy: (times) => Math.min(times * reconnectMs, reconnectMaxMs),
    connectTimeout: 1_000,
  });
  // By default, `onError` does nothing, because a failed call rejects with the error. But without a listener
  // for `error`, ioredis would write to the console.
  client.on('error', onError);
  return client;
}
