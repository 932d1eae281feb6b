import fastifyCircuitBreaker from '@fastify/circuit-breaker';
import fastifyRateLimit from '@fastify/rate-limit';
import { memoryEngine } from '@holdfast/contracts/memory';
import { openRedis } from '@holdfast/redis';
import { bulkhead, deadline, health, idempotency, type Part, rateLimit, shed } from '@holdfast/server';
import { guard as guardExpress } from '@holdfast/server/express';
import { guard } from '@holdfast/server/fastify';
import { guard as guardHono } from '@holdfast/server/hono';
import { rateLimit as expressRateLimit } from 'express-rate-limit';
import type { FastifyInstance } from 'fastify';
import { rateLimiter as honoRateLimiter } from 'hono-rate-limiter';
import { Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible';
import type { Bar } from '../../compare.ts';
import { expressServer, fastifyServer, honoServer } from './frameworks.ts';
import type { Burst } from './load.ts';

/** Starts a server, and gives its port. */
type Start = () => Promise<number>;

/** The pairs that are compared: `floor`, `ours` and peers by name. */
export interface ServerField {
  readonly name: string;
  readonly kind: Burst['kind'];
  readonly bars: readonly Bar[];
  readonly contestants: Readonly<Record<string, Start>>;
}

interface Field {
  readonly name: string;
  readonly kind?: Burst['kind'];
  readonly bars: readonly Bar[];
  readonly floor: Start;
  readonly ours: Start;
  readonly peers: Readonly<Record<string, Start>>;
}

/** Never reached. */
const wide = 10_000_000;
const windowMs = 60_000;
const limits = { rate: `${wide}/m` } as const;

export function serverFields(redisUrl: string | undefined): ServerField[] {
  const fields = [...memoryFields(), ...(redisUrl === undefined ? [] : redisFields(redisUrl))];
  return fields.map(({ name, kind = 'get', bars, floor, ours, peers }) => ({
    name,
    kind,
    bars: [...bars, ...Object.keys(peers).map((aheadOf) => ({ aheadOf, times: 1 }))],
    contestants: { floor, ours, ...peers },
  }));
}

function guarded(parts: () => readonly Part[]): Start {
  return () => fastifyServer((app) => app.register(guard, { parts: parts() }));
}

/** It finds its limit as ever, and never refuses: a benchmark keeps the thread busy on purpose. */
function unbusy(): Part {
  return shed({ initial: 1000, floor: 1000 }, { readings: { utilization: () => 0, heap: () => 0 } });
}

const bare: Start = () => fastifyServer(() => {});

function memoryFields(): Field[] {
  return [
    { name: 'the same twice', bars: [], floor: bare, ours: bare, peers: {} },
    {
      name: 'memory limiter',
      bars: [{ toFloorMax: 1.03, orAddedMax: 1000 }],
      floor: bare,
      ours: guarded(() => [rateLimit({ limits })]),
      peers: {
        '@fastify/rate-limit': () =>
          fastifyServer((app) => app.register(fastifyRateLimit, { max: wide, timeWindow: windowMs })),
        'rate-limiter-flexible': () =>
          fastifyServer((app) => flexibleHook(app, new RateLimiterMemory({ points: wide, duration: 60 }))),
      },
    },
    {
      // As those do that the others are compared with: with fields in every answer.
      name: 'limiter that always tells',
      bars: [],
      floor: bare,
      ours: guarded(() => [rateLimit({ limits, fields: 'always' })]),
      peers: {
        '@fastify/rate-limit': () =>
          fastifyServer((app) => app.register(fastifyRateLimit, { max: wide, timeWindow: windowMs })),
      },
    },
    {
      name: 'whole set',
      bars: [{ toFloorMax: 1.1 }],
      floor: bare,
      ours: guarded(() => [health(), deadline(), rateLimit({ limits }), unbusy(), bulkhead()]),
      peers: {
        '@fastify/circuit-breaker': () => fastifyServer((app) => app.register(fastifyCircuitBreaker), true),
      },
    },
    {
      name: 'idempotency memory',
      kind: 'post',
      bars: [{ toFloorMax: 1.25 }],
      floor: bare,
      ours: guarded(() => [idempotency({ ledger: memoryEngine().ledger, ...keys })]),
      peers: {},
    },
    {
      name: 'limiter in Express',
      bars: [],
      floor: () => expressServer([]),
      ours: () => expressServer([guardExpress([rateLimit({ limits })])]),
      peers: {
        'express-rate-limit': () =>
          expressServer([expressRateLimit({ limit: wide, windowMs, standardHeaders: 'draft-8' })]),
      },
    },
    {
      name: 'limiter in Hono',
      bars: [],
      floor: () => honoServer([]),
      ours: () => honoServer([guardHono([rateLimit({ limits })])]),
      peers: {
        'hono-rate-limiter': () =>
          honoServer([honoRateLimiter({ limit: wide, windowMs, keyGenerator: () => 'key' })]),
      },
    },
  ];
}

/** On a busy machine a store may be late, which is no cost. */
const patient = { timeout: '5s' } as const;

/** Kept for a moment only: a benchmark makes more keys than a day of most services. */
const keys = { scope: () => 'tenant', keep: '500ms', liveMax: 1_000_000, ...patient } as const;

function redisFields(url: string): Field[] {
  // Sent together, as its readme advises and as ours are.
  const client = () => new Redis(url, { enableAutoPipelining: true });
  return [
    {
      name: 'redis limiter',
      bars: [],
      floor: bare,
      ours: guarded(() => [rateLimit({ limits, rateLimits: openRedis({ url }).rateLimits, ...patient })]),
      peers: {
        '@fastify/rate-limit': () =>
          fastifyServer((app) =>
            app.register(fastifyRateLimit, { max: wide, timeWindow: windowMs, redis: client() }),
          ),
        'rate-limiter-flexible': () =>
          fastifyServer((app) =>
            flexibleHook(app, new RateLimiterRedis({ storeClient: client(), points: wide, duration: 60 })),
          ),
      },
    },
    {
      name: 'idempotency redis',
      kind: 'post',
      bars: [{ toFloorMax: 1.7 }],
      floor: bare,
      ours: guarded(() => [idempotency({ ledger: openRedis({ url }).ledger, ...keys })]),
      peers: {},
    },
  ];
}

/** It has no plugin: this is what its readme shows, with the headers that the others send. */
function flexibleHook(app: FastifyInstance, limiter: RateLimiterMemory | RateLimiterRedis): void {
  app.addHook('onRequest', async (request, reply) => {
    const { remainingPoints, msBeforeNext } = await limiter.consume(request.ip);
    reply.header('x-ratelimit-limit', wide);
    reply.header('x-ratelimit-remaining', remainingPoints);
    reply.header('x-ratelimit-reset', Math.ceil(msBeforeNext / 1000));
  });
}
