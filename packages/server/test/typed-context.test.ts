import type { DatabaseSync } from 'node:sqlite';
import type { ServerType } from '@hono/node-server';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { BreakerState, Clock } from 'holdfast';
import { expectTypeOf, test } from 'vitest';
import type { guard as guardExpress } from '../src/express.ts';
import type { FastifyGuardOptions } from '../src/fastify.ts';
import type { guard as guardHono } from '../src/hono.ts';
import {
  type bulkhead,
  contextOf,
  type Dependency,
  type DependencyHealth,
  type deadline,
  type degrade,
  type EndListener,
  type Exchange,
  type FastPathRequest,
  type gracefulShutdown,
  guardWeb,
  type HeaderNames,
  type health,
  type IdempotentRequest,
  type idempotency,
  type Part,
  type PlainResponse,
  type RateEnvironment,
  type Readings,
  type RequestBody,
  type RequestContext,
  type ResponseReviewer,
  type rateLimit,
  type ShedEnvironment,
  type shed,
  toResponse,
  type WebRequestInfo,
} from '../src/index.ts';
import type { NodeGuardOptions } from '../src/node.ts';

test('a context has the transactions of the ledger that it is told of', () => {
  expectTypeOf(contextOf({})?.idempotent).toEqualTypeOf<IdempotentRequest | undefined>();
  expectTypeOf(contextOf<DatabaseSync>({})?.idempotent).toEqualTypeOf<
    IdempotentRequest<DatabaseSync> | undefined
  >();
  guardWeb([], async (_request, { idempotent }: RequestContext<DatabaseSync>) =>
    toResponse(
      await idempotent!.commit((tx) => {
        tx.exec('DELETE FROM orders');
        return { status: 204, headers: {}, body: null };
      }),
    ),
  );
});

test('what was committed is sent by Fastify, and what Hono serves ends gracefully, without a cast', () => {
  expectTypeOf<PlainResponse['headers']>().toExtend<Parameters<FastifyReply['headers']>[0]>();
  expectTypeOf<ServerType>().toExtend<Parameters<typeof gracefulShutdown>[0]>();
  expectTypeOf<FastifyInstance>().toExtend<Parameters<typeof gracefulShutdown>[0]>();
});

test('what is optional may be undefined', () => {
  interface Unset {
    readonly clock: undefined;
  }
  type Environments =
    | Parameters<typeof deadline>[1]
    | Parameters<typeof degrade>[1]
    | Parameters<typeof guardExpress>[1]
    | Parameters<typeof guardHono>[1]
    | Parameters<typeof guardWeb>[2]
    | Parameters<typeof health>[1];
  expectTypeOf<NonNullable<Environments>>().toEqualTypeOf<{ readonly clock?: Clock | undefined }>();
  expectTypeOf<Unset & { random: undefined }>().toExtend<
    NonNullable<Parameters<typeof bulkhead>[1]> & NonNullable<Parameters<typeof idempotency>[1]>
  >();
  expectTypeOf<Unset & { isTerminal: undefined }>().toExtend<
    NonNullable<Parameters<typeof gracefulShutdown>[2]>
  >();
  expectTypeOf<Unset & { random: undefined; readings: undefined }>().toExtend<
    RateEnvironment & ShedEnvironment
  >();
  expectTypeOf<Unset & { onError: undefined }>().toExtend<NodeGuardOptions>();
  expectTypeOf<Unset & { parts: []; at: undefined }>().toExtend<FastifyGuardOptions>();
  expectTypeOf<{ check: undefined; policy: undefined; critical: undefined }>().toExtend<Dependency>();
  expectTypeOf<{ peer: undefined; route: undefined; native: undefined }>().toExtend<WebRequestInfo>();
});

test('what signatures mention can be named', () => {
  expectTypeOf<Parameters<typeof rateLimit>[1]>().toEqualTypeOf<RateEnvironment | undefined>();
  expectTypeOf<Parameters<typeof shed>[1]>().toEqualTypeOf<ShedEnvironment | undefined>();
  expectTypeOf<ShedEnvironment['readings']>().toEqualTypeOf<Readings | undefined>();
  expectTypeOf<Parameters<Exchange['addReviewer']>[1]>().toEqualTypeOf<ResponseReviewer>();
  expectTypeOf<Parameters<Exchange['onEnd']>[0]>().toEqualTypeOf<EndListener>();
  expectTypeOf<Parameters<Exchange['mayHaveHeader']>[0]>().toEqualTypeOf<HeaderNames>();
  expectTypeOf<ReturnType<Exchange['readBody']>>().toEqualTypeOf<RequestBody | Promise<RequestBody>>();
  expectTypeOf<Parameters<NonNullable<Part['tryFastPath']>>[0]>().toEqualTypeOf<FastPathRequest>();
  expectTypeOf<NonNullable<DependencyHealth['breakers']>[string]>().toEqualTypeOf<BreakerState>();
});
