import { memoryEngine } from '@holdfast/contracts/memory';
import express from 'express';
import fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import { guard as guardExpress } from '../src/express.ts';
import { guard as guardFastify } from '../src/fastify.ts';
import { guard as guardHono } from '../src/hono.ts';
import {
  bulkhead,
  deadline,
  gracefulShutdown,
  guardWeb,
  harden,
  health,
  idempotency,
  type Part,
  rateLimit,
  shed,
} from '../src/index.ts';
import { guard as guardNode } from '../src/node.ts';
import { plain, reply } from './frameworks.ts';

const { ledger } = memoryEngine();
const networks = ['10.0.0.0/8'] as never;
const handler = () => new Response();

describe('an option that would be of no use is refused by its name', () => {
  test.each<[said: string, () => unknown]>([
    ['rateLimit.proxies: expected what peers("10.0.0.0/8") gives', () => rateLimit({ proxies: networks })],
    ['rateLimit.rateLimits: expected RateLimits', () => rateLimit({ rateLimits: {} as never })],
    ['rateLimit.limits: expected at least one limit', () => rateLimit({ limits: [] })],
    [
      'rateLimit.limits[1].name: expected a name of its own, got "a"',
      () => rateLimit({ limits: [{ name: 'a' }, { name: 'a', rate: '1/s' }] }),
    ],
    [
      'rateLimit.reportOnly: expected true or false, got "false"',
      () => rateLimit({ reportOnly: 'false' as never }),
    ],
    ['deadline.inside', () => deadline({ inside: networks })],
    ['shed.inside', () => shed({ inside: networks })],
    ['shed.ceiling: expected at least the floor of 30, got 10', () => shed({ floor: 30, ceiling: 10 })],
    ['shed.ceiling: expected at least the floor of 4, got 2', () => shed({ ceiling: 2 })],
    [
      'health.dependencies.db: expected an object with check or policy',
      () => health({ dependencies: { db: (async () => true) as never } }),
    ],
    [
      'health.dependencies.db.chek: not an option; did you mean check?',
      () => health({ dependencies: { db: { chek: () => true } as never } }),
    ],
    ['health.dependencies: expected dependencies by name', () => health({ dependencies: 'db' as never })],
    [
      'idempotency.methods[0]: expected a method such as "POST", got 5',
      () => idempotency({ ledger, scope: 'public', methods: [5 as never] }),
    ],
    [
      'idempotency.required: expected true or false, got "no"',
      () => idempotency({ ledger, scope: 'public', required: 'no' as never }),
    ],
    ['idempotency.ledger: expected a Ledger', () => idempotency({ ledger: {} as never, scope: 'public' })],
    [
      'gracefulShutdown.health: expected what health() gives',
      () => gracefulShutdown(undefined as never, { health: true as never }),
    ],
    [
      'gracefulShutdown.clok: not an option; did you mean clock?',
      () => gracefulShutdown(undefined as never, {}, { clok: undefined } as never),
    ],
    [
      'gracefulShutdown.server: expected the server that createServer() or app.listen() returns, or a Fastify app, got "function"',
      () => gracefulShutdown(express() as never),
    ],
    ['got undefined', () => gracefulShutdown(undefined as never)],
    [
      "idempotency: expected options such as { ledger, scope: 'public' }, got undefined",
      () => idempotency(undefined as never),
    ],
    ['deadline: expected options such as { timeout: \'3s\' }, got "3s"', () => deadline('3s' as never)],
    ['rateLimit: expected options such as', () => rateLimit(['100/m'] as never)],
    ['shed: expected options such as { ceiling: 1000 }, got 5', () => shed(5 as never)],
    ['health: expected options such as', () => health(null as never)],
    [
      'harden.server: expected the server that createServer() or app.listen() returns, or the `server` of a Fastify app, got "object"',
      () => harden({} as never),
    ],
    ['harden.server: expected the server', () => harden(undefined as never)],
    [
      'idempotency.methods[0]: expected a method such as "POST", got "PSOT"; did you mean POST?',
      () => idempotency({ ledger, scope: 'public', methods: ['PSOT'] }),
    ],
    [
      'gracefulShutdown.signals[0]: expected a signal such as "SIGTERM", got "SIGFOO"',
      () => gracefulShutdown(undefined as never, { signals: ['SIGFOO' as never] }),
    ],
    [
      'gracefulShutdown.signals[0]: expected a signal such as "SIGTERM", got "SIGKILL"',
      () => gracefulShutdown(undefined as never, { signals: 'SIGKILL' }),
    ],
    ['shed.initial: expected at most the ceiling of 1000, got 5000', () => shed({ initial: 5000 })],
    ...(['rate', 'max', 'windowMs'] as const).map(
      (word) =>
        [
          `rateLimit.${word}: not an option; did you mean limits: { rate: '100/m' }?`,
          () => rateLimit({ [word]: 10 } as never),
        ] as [string, () => unknown],
    ),
    [
      'idempotency.ttl: not an option; did you mean keep?',
      () => idempotency({ ledger, scope: 'public', ttl: '1h' } as never),
    ],
    ['bulkhead.max: not an option; did you mean concurrent?', () => bulkhead({ max: 10 } as never)],
    [
      'idempotency.ledger: expected a Ledger, got "an engine"; did you mean its .ledger?',
      () => idempotency({ ledger: memoryEngine() as never, scope: 'public' }),
    ],
    [
      'rateLimit.rateLimits: expected RateLimits, got "an engine"; did you mean its .rateLimits?',
      () => rateLimit({ rateLimits: memoryEngine() as never }),
    ],
    [
      'guard.handler: expected a function as second argument, got undefined',
      () => guardNode([], undefined as never),
    ],
    ['guardWeb.handler: expected a function', () => guardWeb([], undefined as never)],
    [
      'guard: expected app.register(guard, { parts: […] }), got "guard([…])"',
      () => fastify().addHook('onRequest', (guardFastify as never as (parts: Part[]) => never)([deadline()])),
    ],
    ['harden.max: not an option', () => harden(undefined as never, { max: 5 } as never)],
    [
      'guardWeb.onError: not an option; there are clock',
      () => guardWeb([], handler, { onError: handler } as never),
    ],
    [
      'guard.onEror: not an option; did you mean onError?',
      () => guardNode([], () => {}, { onEror() {} } as never),
    ],
    ['guard.onError: not an option; there are clock', () => guardExpress([], { onError() {} } as never)],
    ['guard.onError: not an option; there are clock', () => guardHono([], { onError() {} } as never)],
    ['parts: expected a list of parts', () => guardWeb(rateLimit() as never, handler)],
    [
      'parts[1]: expected a part such as rateLimit(), got function rateLimit',
      () => guardWeb([deadline(), rateLimit as unknown as Part], handler),
    ],
  ])('%s', (said, make) => {
    expect(make).toThrow(said);
  });
});

test('so is one of the Fastify plugin, but not what Fastify reads itself', async () => {
  const register = async (options: object) =>
    await fastify().register(guardFastify, { parts: [deadline()], ...options });
  await expect(register({ att: 'preHandler' })).rejects.toThrow('guard.att: not an option; did you mean at?');
  await expect(register({ parts: deadline() })).rejects.toThrow('parts: expected a list of parts');
  await register({ prefix: '/orders', logLevel: 'warn', logSerializers: {} });
});

test('a ceiling below the default of `initial` is where the limit starts', () => {
  expect(shed({ ceiling: 10 }).limit).toBe(10);
});

test('methods may be written in small letters', async () => {
  await using server = await plain.serve([idempotency({ ledger, scope: 'public', methods: ['put'] })], () =>
    reply(200),
  );
  expect((await fetch(server.origin, { method: 'PUT', body: 'x' })).status).toBe(400);
});

describe('what a function says that makes no sense', () => {
  test.each([Number.NaN, -1])('a cost of %s is no way around a limit', async (cost) => {
    const costs = [cost, 1, 1];
    await using server = await plain.serve(
      [rateLimit({ limits: { rate: '1/h' }, cost: () => costs.shift()! })],
      () => reply(200),
    );
    const statuses = [];
    for (const _ of [1, 2, 3]) statuses.push((await fetch(server.origin)).status);
    expect(statuses).toEqual([500, 200, 429]);
  });

  test('a scope that is no text executes nothing', async () => {
    let calls = 0;
    await using server = await plain.serve([idempotency({ ledger, scope: () => 17 as never })], () => {
      calls++;
      return reply(200);
    });
    const headers = { 'idempotency-key': 'k' };
    expect((await fetch(server.origin, { method: 'POST', body: 'x', headers })).status).toBe(500);
    expect(calls).toBe(0);
  });
});
