import { once } from 'node:events';
import { createServer, IncomingMessage, type Server, ServerResponse } from 'node:http';
import { connect, Socket } from 'node:net';
import { memoryEngine } from '@holdfast/contracts/memory';
import express from 'express';
import { systemClock } from 'holdfast';
import { describe, expect, test } from 'vitest';
import { guard as guardExpress } from '../src/express.ts';
import { bulkhead, gracefulShutdown, idempotency } from '../src/index.ts';
import { NodeExchange } from '../src/node/node-exchange.ts';
import { guard } from '../src/node.ts';
import { frameworks, listen, reply } from './frameworks.ts';

// Behind `fetch` nothing is known but what the server says in the request's signal.
const onSockets = frameworks.filter(({ name }) => name !== 'fetch');

describe.each(onSockets)('with $name, a connection', ({ serve }) => {
  test('that is lost returns the permits of all requests that were pipelined on it', async () => {
    const limit = bulkhead({ concurrent: 12 });
    await using server = await serve(
      [limit],
      ({ context: { signal } }) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve(reply(200)))),
    );
    const client = connect(server.port, '127.0.0.1');
    client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(12));
    await expect.poll(() => limit.inFlight).toBe(12);
    client.destroy();
    await expect.poll(() => limit.inFlight).toBe(0);
  });
});

test('an answer that waits behind another on its connection ends with that, also where Node does not say so', () => {
  const socket = new Socket();
  const ends: boolean[] = [];
  const exchanges = Array.from({ length: 20 }, () => {
    const request = Object.assign(new IncomingMessage(socket), { method: 'GET' });
    const exchange = new NodeExchange(request, new ServerResponse(request), systemClock);
    exchange.onEnd((_now, completed) => ends.push(completed));
    return exchange;
  });
  exchanges[0]!.response.emit('close');
  expect(ends).toEqual([false]);
  socket.emit('close');
  expect(ends).toHaveLength(20);
  expect(socket.listenerCount('close')).toBeLessThan(5);
});

test('a request that was pipelined is counted once by those who end gracefully', async () => {
  // Never answered.
  const server = createServer(() => {});
  await using running = await listen(server);
  const ending = gracefulShutdown(server, { drainDelay: '1ms', patience: '20ms', signals: [] });
  const arrived = Promise.withResolvers<void>();
  server.on('request', ({ url }) => url === '/third' && arrived.resolve());
  const lost = connect(running.port, '127.0.0.1');
  lost.write(
    ['/first', '/second', '/third'].map((path) => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`).join(''),
  );
  await arrived.promise;
  const gone = once(server, 'request');
  lost.destroy();
  const held = connect(running.port, '127.0.0.1');
  held.on('error', () => {});
  held.write('GET /held HTTP/1.1\r\nhost: a\r\n\r\n');
  await gone;
  await expect.poll(() => openOf(server)).toBe(1);
  expect(await ending.shutdown()).toBe(1);
});

const openOf = (server: Server) =>
  new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)));

describe('a client that disconnects in the middle of its body is not a failure', () => {
  const keyed = () => idempotency({ ledger: memoryEngine().ledger, scope: 'public' });

  async function leave(port: number, hasArrived: Promise<unknown>) {
    const client = connect(port, '127.0.0.1');
    client.write('POST / HTTP/1.1\r\nhost: a\r\nidempotency-key: k\r\ncontent-length: 9\r\n\r\nhalf');
    await hasArrived;
    client.destroy();
  }

  test('with node:http', async () => {
    const errors: unknown[] = [];
    const arrived = Promise.withResolvers<void>();
    const gone = Promise.withResolvers<void>();
    const guarded = guard([keyed()], () => {}, { onError: (error) => errors.push(error) });
    const server = createServer((request, response) => {
      response.on('close', () => setImmediate(gone.resolve));
      guarded(request, response);
      arrived.resolve();
    });
    await using running = await listen(server);
    await leave(running.port, arrived.promise);
    await gone.promise;
    expect(errors).toEqual([]);
  });

  test('with Express', async () => {
    const errors: unknown[] = [];
    const arrived = Promise.withResolvers<void>();
    const gone = Promise.withResolvers<void>();
    const app = express();
    app.use((_request, response, next) => {
      response.on('close', () => setImmediate(gone.resolve));
      next();
      arrived.resolve();
    });
    app.use(guardExpress([keyed()]));
    app.use(((error, _request, response, _next) => {
      errors.push(error);
      response.end();
    }) as express.ErrorRequestHandler);
    await using running = await listen(createServer(app));
    await leave(running.port, arrived.promise);
    await gone.promise;
    expect(errors).toEqual([]);
  });
});
