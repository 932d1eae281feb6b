import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createHttp2Server, connect as http2Connect } from 'node:http2';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { memoryEngine } from '@holdfast/contracts/memory';
import express from 'express';
import { virtualClock } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import { guard as guardExpress } from '../src/express.ts';
import { deadline, guardWeb, type IdempotencyOptions, idempotency, type Part } from '../src/index.ts';
import { guard as guardNode } from '../src/node.ts';
import { frameworks, listen, plain, reply } from './frameworks.ts';

/** A ledger that answers `begin` when it is told to, and what it was asked for. */
function slowLedger(options: Partial<IdempotencyOptions> = {}) {
  const clock = virtualClock();
  const { ledger } = memoryEngine({ clock });
  let open = Promise.withResolvers<void>();
  const asked: string[] = [];
  const part = idempotency({
    scope: 'public',
    timeout: '10s',
    lease: '10s',
    ledger: {
      ...ledger,
      async begin(claims) {
        asked.push(...claims.map(() => 'begin'));
        await open.promise;
        return ledger.begin(claims);
      },
      async release(holds) {
        asked.push(...holds.map(() => 'release'));
        return ledger.release(holds);
      },
      async extend(holds, leaseMs) {
        asked.push(...holds.map(() => `extend ${leaseMs}`));
        return ledger.extend(holds, leaseMs);
      },
    },
    ...options,
  });
  return {
    part,
    asked,
    /** Of the leases. */
    clock,
    answer: () => open.resolve(),
    hold: () => {
      open = Promise.withResolvers<void>();
    },
  };
}

/** A part that keeps requests waiting until it is told to let them pass; `listens`: it has an end listener, as a bulkhead has. */
function slowPart(listens = false): Part & { readonly entered: Promise<void>; pass(): void } {
  const entered = Promise.withResolvers<void>();
  const passing = Promise.withResolvers<undefined>();
  return {
    name: 'rateLimit',
    entered: entered.promise,
    pass: () => passing.resolve(undefined),
    enter(exchange) {
      if (listens) exchange.onEnd(() => {});
      entered.resolve();
      return passing.promise;
    },
  };
}

const request = (key = 'k') =>
  `POST / HTTP/1.1\r\nhost: a\r\nidempotency-key: ${key}\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\r\none`;

const post = (origin: string) =>
  fetch(origin, {
    method: 'POST',
    body: 'one',
    headers: { 'idempotency-key': 'k', 'content-type': 'text/plain' },
  });

/** Sends `bytes`, disconnects when `arrived` says so, and is done when the server has noticed. */
async function sendAndDisconnect(
  server: {
    readonly port: number;
    readonly server: { once(name: 'connection', heard: (s: Socket) => void): unknown };
  },
  bytes: string,
  arrived: () => Promise<unknown> | unknown,
) {
  const noticed = Promise.withResolvers<void>();
  server.server.once('connection', (socket) => socket.once('close', () => noticed.resolve()));
  const client = connect(server.port, '127.0.0.1');
  client.write(bytes);
  await arrived();
  client.destroy();
  await noticed.promise;
  await nextTurn();
}

describe.each(frameworks)('a client that disconnects from $name', ({ serve }) => {
  test('during the call of the ledger has its handler not run, and its key is free again', async () => {
    const { part, asked, answer } = slowLedger();
    let handled = 0;
    await using server = await serve([part], () => reply(200, `handled ${++handled}`));
    await sendAndDisconnect(server, request(), () => expect.poll(() => asked).toEqual(['begin']));
    answer();
    await expect.poll(() => asked).toEqual(['begin', 'release']);
    expect([handled, part.counts.executed]).toEqual([0, 0]);
    expect(await (await post(server.origin)).text()).toBe('handled 1');
  });

  test('while a part before the key waits has no key taken, and its handler not run', async () => {
    const slow = slowPart();
    const { part, asked } = slowLedger();
    let handled = 0;
    await using server = await serve([slow, part], () => reply(200, `handled ${++handled}`));
    await sendAndDisconnect(server, request(), () => slow.entered);
    slow.pass();
    await nextTurn();
    await nextTurn();
    expect([handled, asked]).toEqual([0, []]);
  });

  test('while a part waits that holds no key has its handler not run', async () => {
    const slow = slowPart();
    let handled = 0;
    await using server = await serve([slow], () => reply(200, `handled ${++handled}`));
    await sendAndDisconnect(server, request(), () => slow.entered);
    slow.pass();
    await nextTurn();
    await nextTurn();
    expect(handled).toBe(0);
    expect(await (await post(server.origin)).text()).toBe('handled 1');
  });
});

test('of two pipelined requests whose connection is lost, neither is handled and both keys are free', async () => {
  const { part, asked, answer } = slowLedger();
  let handled = 0;
  await using server = await plain.serve([part], () => reply(200, `handled ${++handled}`));
  await sendAndDisconnect(server, request('k') + request('l'), () =>
    expect.poll(() => asked).toEqual(['begin', 'begin']),
  );
  answer();
  await expect.poll(() => asked).toEqual(['begin', 'begin', 'release', 'release']);
  expect([handled, part.counts.executed]).toEqual([0, 0]);
});

test('a stream of HTTP/2 that is reset while the ledger is asked is not handled, and its key is free', async () => {
  const { part, asked, answer } = slowLedger();
  let handled = 0;
  const guarded = guardNode([part], (_request, response) => response.end(`handled ${++handled}`));
  const closed = Promise.withResolvers<void>();
  const server = createHttp2Server((request, response) => {
    request.stream.once('close', closed.resolve);
    guarded(request as never, response as never);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = http2Connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const stream = client.request({ ':method': 'POST', 'idempotency-key': 'k' });
  stream.end('one');
  await expect.poll(() => asked).toEqual(['begin']);
  stream.close(8);
  await closed.promise;
  answer();
  await expect.poll(() => asked).toEqual(['begin', 'release']);
  expect(handled).toBe(0);
  client.destroy();
  server.close();
});

test('patience that is spent while a part waits ends in a 504, and the handler does not run', async () => {
  const clock = virtualClock();
  const slow = slowPart();
  let handled = 0;
  const guarded = guardWeb(
    [deadline({ timeout: '1s' }, { clock }), slow],
    () => {
      handled++;
      return new Response();
    },
    { clock },
  );
  const answer = guarded(new Request('http://a/'));
  await clock.advance('1s');
  slow.pass();
  expect([(await answer).status, handled]).toEqual([504, 0]);
});

test('a key that was taken over is not forgotten: the next request knows that it is not the first', async () => {
  const { part, asked, answer, hold, clock } = slowLedger({ whenLost: 'reexecute' });
  const first = Promise.withResolvers<void>();
  await using server = await plain.serve([part], async ({ context }) => {
    const { attempt } = context.idempotent!;
    if (attempt === 1) await first.promise;
    return reply(200, `attempt ${attempt}`);
  });
  answer();
  const lost = post(server.origin);
  await expect.poll(() => part.counts.executed).toBe(1);
  await clock.advance('10s');
  hold();
  await sendAndDisconnect(server, request(), () => expect.poll(() => asked).toEqual(['begin', 'begin']));
  answer();
  await expect.poll(() => asked).toEqual(['begin', 'begin', 'extend 1']);
  await clock.advance('1ms');
  expect(await (await post(server.origin)).text()).toBe('attempt 3');
  first.resolve();
  await lost;
});

test('a key that is held gets an outcome, although the client disconnects before the next guard', async () => {
  const { part, answer } = slowLedger();
  const slow = slowPart(true);
  answer();
  let handled = 0;
  const app = express();
  app.post('/', guardExpress([part]), guardExpress([slow]), (_request, response) => {
    response.send(`handled ${++handled}`);
  });
  await using server = await listen(createServer(app));
  await sendAndDisconnect(server, request(), () => slow.entered);
  slow.pass();
  await expect.poll(async () => (await post(server.origin)).text()).toBe('handled 1');
});
