import type { Engine, Ledger, RateLimits } from '@holdfast/contracts';
import { OptionsError } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { Redis } from 'ioredis';
import { redisFeatures } from './features.ts';
import { redisLedger } from './ledger.ts';
import { redisRateLimits } from './rate-limits.ts';
import type { RedisClient } from './script-runner.ts';

export interface RedisOptions {
  /** `redis://localhost:6379/0`; or give a `client`. */
  readonly url?: string | undefined;
  /** A client or a Cluster of ioredis. `close` does not close it. */
  readonly client?: RedisClient | undefined;
  /** Put before every key: `holdfast:` unless given. */
  readonly prefix?: string | undefined;
  /** How long marks are kept: they say that a handler is done with an event. 60 days unless given. */
  readonly keepMarksMs?: number | undefined;
  /** Called when a connection is lost. The client reconnects by itself. */
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

/** A call is repeated on at most this many new connections; then it rejects. */
const reconnectsMax = 20;
const reconnectMs = 50;
const reconnectMaxMs = 500;

/** Idempotency keys, marks and rate limits in Redis 6.2 or later. It connects by itself, now and after an outage. */
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

    /** Redis removes expired keys by itself. */
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
  // Calls reject by themselves. Without a listener ioredis would write to the console.
  client.on('error', onError);
  return client;
}
