import type { Engine, Ledger, RateLimits } from '@holdfast/contracts';
import { OptionsError } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { Redis } from 'ioredis';
import { redisFeatures } from './features.ts';
import { redisLedger } from './ledger.ts';
import { redisRateLimits } from './rate-limits.ts';
import type { RedisClient } from './script-runner.ts';

export interface RedisOptions {
  /** The address of the server, such as `redis://localhost:6379/0`. Not needed with a `client`. */
  readonly url?: string | undefined;
  /** A `Redis` or `Cluster` object of ioredis that your application owns. `close` does not close it. */
  readonly client?: RedisClient | undefined;
  /** The prefix of all Redis keys. Default: `holdfast:`. */
  readonly prefix?: string | undefined;
  /** How long marks are kept; a mark records that a handler has processed an event. Default: 60 days. */
  readonly keepMarksMs?: number | undefined;
  /** Called when the connection is lost. The client reconnects by itself. */
  readonly onError?: ((error: Error) => void) | undefined;
}

const known: Readonly<Record<keyof RedisOptions, true>> = {
  url: true,
  client: true,
  prefix: true,
  keepMarksMs: true,
  onError: true,
};

export interface RedisEngine extends Engine<never> {
  readonly ledger: Ledger<never>;
  readonly rateLimits: RateLimits;
  readonly client: RedisClient;
}

const keepMarksMs = 60 * 24 * 60 * 60 * 1000;

/** A call is repeated on at most this many new connections; after that it rejects. */
const reconnectsMax = 20;
const reconnectMs = 50;
const reconnectMaxMs = 500;

/**
 * Opens an engine for idempotency keys, marks and rate limits in Redis 6.2 or later. The client connects by itself,
 * also after an outage.
 */
export function openRedis(options: RedisOptions): RedisEngine {
  assertKnownFields(known, options);
  const { prefix = 'holdfast:' } = options;
  const client = options.client ?? connect(options);
  return {
    name: 'redis',
    durability: 'process',
    features: redisFeatures,
    client,
    ledger: redisLedger(client, { prefix, keepMarksMs: options.keepMarksMs ?? keepMarksMs }),
    rateLimits: redisRateLimits(client, { prefix }),

    /** There is nothing to do: Redis removes expired keys by itself. */
    async sweep() {
      return 0;
    },

    async close() {
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
  // A call that fails rejects by itself. Without a listener for `error`, ioredis would write to the console.
  client.on('error', onError);
  return client;
}
