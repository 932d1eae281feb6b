import { once } from 'node:events';
import { createServer, request as httpRequest, type RequestListener } from 'node:http';
import type net from 'node:net';
import { Readable } from 'node:stream';
import { memoryEngine } from '@holdfast/contracts/memory';
import { serve as serveFetch } from '@hono/node-server';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { describe, expect, test } from 'vitest';
import { guard as guardExpress } from '../src/express.ts';
import { guard as guardFastify } from '../src/fastify.ts';
import { guard as guardHono } from '../src/hono.ts';
import {
  bulkhead,
  contextOf,
  deadline,
  degrade,
  type IdempotencyOptions,
  idempotency,
  rateLimit,
} from '../src/index.ts';
import { guard } from '../src/node.ts';
import { frameworks, listen, plain, reply } from './frameworks.ts';

const keyed = (options: Partial<IdempotencyOptions> = {}) =>
  idempotency({ ledger: memoryEngine().ledger, scope: 'public', ...options });

const serve = (listener: RequestListener) => listen(createServer(listener));

const post = (
  origin: string,
  body: BodyInit | null = 'one',
  headers: Record<string, string> = {},
  signal: AbortSignal | null = null,
) => fetch(origin, { method: 'POST', body, headers: { 'idempotency-key': 'k', ...headers }, signal });

describe('a handler whose response is held', () => {
  test('hears of a header that cannot be sent', async () => {
    await using server = await serve(
      guard([keyed()], (_request, response) => {
        try {
          response.writeHead(200, { 'content-disposition': 'attachment; filename="€.txt"' });
          response.end('no');
        } catch (error) {
          response.writeHead(500).end((error as { code: string }).code);
        }
      }),
    );
    const answer = await post(server.origin);
    expect([answer.status, await answer.text()]).toEqual([500, 'ERR_INVALID_CHAR']);
  });

  test('may go on with an answer that was replaced', async () => {
    const over = Promise.withResolvers<void>();
    let fails = false;
    await using server = await serve(
      guard([degrade({ responseMax: 10 })], async (_request, response) => {
        if (!fails) return void response.end('good');
        response.statusCode = 500;
        for (let turn = 0; turn < 50; turn++) {
          response.write('a longer answer');
          await new Promise((resolve) =>
            turn < 10 ? queueMicrotask(() => resolve(0)) : setImmediate(resolve),
          );
        }
        response.end();
        over.resolve();
      }),
    );
    expect(await (await fetch(server.origin)).text()).toBe('good');
    fails = true;
    expect(await (await fetch(server.origin)).text()).toBe('good');
    await over.promise;
  });

  test('may wait until each piece is taken, also of an answer that was replaced', async () => {
    let fails = false;
    const over = Promise.withResolvers<void>();
    await using server = await serve(
      guard([degrade({ responseMax: 10 })], async (_request, response) => {
        if (fails) response.statusCode = 500;
        for (const piece of fails ? ['a long ', 'failure, ', 'told ', 'in full'] : ['go', 'od']) {
          await new Promise<void>((resolve) => response.write(piece, () => resolve()));
        }
        await new Promise<void>((resolve) => response.end(resolve));
        if (fails) over.resolve();
      }),
    );
    expect(await (await fetch(server.origin)).text()).toBe('good');
    fails = true;
    expect(await (await fetch(server.origin)).text()).toBe('good');
    await over.promise;
  });

  test('may write on after its end: what was recorded is what is sent', async () => {
    await using server = await serve(
      guard([keyed()], (_request, response) => {
        response.end('all');
        response.write(' and more');
      }),
    );
    expect(await (await post(server.origin)).text()).toBe('all');
    expect(await (await post(server.origin)).text()).toBe('all');
  });

  test('may be behind a middleware that changes what is written', async () => {
    const app = express();
    app.use(guardExpress([degrade({ responseMax: 10 })]));
    app.use((_request, response, next) => {
      const write = response.write.bind(response) as (chunk: unknown) => boolean;
      const end = response.end.bind(response) as (chunk?: unknown) => typeof response;
      response.write = ((chunk: unknown) => write(String(chunk).toUpperCase())) as typeof response.write;
      response.end = ((chunk?: unknown) =>
        chunk === undefined ? end() : end(String(chunk).toUpperCase())) as typeof response.end;
      next();
    });
    app.get('/', async (_request, response) => {
      response.write('a longer answer ');
      await new Promise((resolve) => response.once('drain', resolve));
      response.write('that goes on ');
      response.end('to its end');
    });
    await using server = await serve(app);
    expect(await (await fetch(server.origin)).text()).toBe('A LONGER ANSWER THAT GOES ON TO ITS END');
  });

  test('may fail after it has answered: what it said is sent, and replayed', async () => {
    const failed = Promise.withResolvers<void>();
    const { ledger } = memoryEngine();
    const slow = {
      ...ledger,
      complete: async (all: Parameters<typeof ledger.complete>[0]) => {
        await failed.promise;
        return ledger.complete(all);
      },
    };
    const app = express();
    app.use(guardExpress([keyed({ ledger: slow, timeout: '5s' })]));
    app.post('/', (_request, response) => {
      response.json({ placed: true });
      throw new Error('too late');
    });
    app.use(((error, _request, response, _next) => {
      response.status(500).type('html').send(`<h1>${error}</h1>`);
      failed.resolve();
    }) as express.ErrorRequestHandler);
    await using server = await serve(app);
    const seen = async () => {
      const answer = await post(server.origin);
      return [answer.status, answer.headers.get('content-type'), await answer.text()];
    };
    const first = await seen();
    expect(first).toEqual([200, 'application/json; charset=utf-8', '{"placed":true}']);
    expect(await seen()).toEqual(first);
  });

  test('that fails in the middle of it does not get away with half of one and half of another', async () => {
    const app = express();
    app.set('env', 'test');
    app.use(guardExpress([keyed()]));
    app.post('/', (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      response.write('half');
      throw new Error('too early');
    });
    await using server = await serve(app);
    await expect(
      post(server.origin).then((answer) => answer.text().then((text) => [answer.status, text])),
    ).rejects.toThrow();
  });

  test('that breaks off leaves no key in progress', async () => {
    await using server = await serve(
      guard([keyed()], (_request, response) => {
        response.write('half');
        response.destroy(new Error('source broke'));
      }),
    );
    await expect(post(server.origin)).rejects.toThrow();
    await expect
      .poll(async () => ((await (await post(server.origin)).json()) as { type: string }).type)
      .toBe('urn:holdfast:problem:response-not-stored');
  });

  test('hears the end of an empty body', async () => {
    await using server = await serve(
      guard([keyed()], (request, response) => {
        request.on('data', () => {}).on('end', () => response.end('heard'));
      }),
    );
    expect(await (await post(server.origin, null)).text()).toBe('heard');
    expect(await (await post(server.origin, '', { 'idempotency-key': 'l' })).text()).toBe('heard');
  });
});

describe('a handler of node:http that fails', () => {
  test.each([
    [
      'throws',
      () => {
        throw new Error('a bug');
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('a bug');
      },
    ],
  ])('and %s gets its client a 500, is told to onError, and the process lives', async (_, handler) => {
    const told: unknown[] = [];
    const parts = [rateLimit(), keyed()];
    await using server = await serve(guard(parts, handler, { onError: (error) => told.push(error) }));
    for (const key of ['one', 'two']) {
      expect((await post(server.origin, 'x', { 'idempotency-key': key })).status).toBe(500);
    }
    expect(told.map(String)).toEqual(['Error: a bug', 'Error: a bug']);
  });

  test('is reported with its stack, method and path, and without what may be secret', async () => {
    const warned = once(process, 'warning');
    const cause = new Error('no route to host');
    await using server = await serve(
      guard([], () => {
        throw new Error('no connection', { cause });
      }),
    );
    const response = await fetch(`${server.origin}/orders/1?token=s3cret`, {
      method: 'POST',
      body: 's3cret',
      headers: { authorization: 's3cret' },
    });
    expect(response.status).toBe(500);
    const [{ message, detail }] = (await warned) as [Error & { detail: string }];
    expect(message).toBe('POST /orders/1 failed');
    expect(detail).toMatch(/^Error: no connection\n +at .*odd-handlers\.test\.ts/);
    expect(detail).toContain('Caused by: Error: no route to host\n');
    expect(message + detail).not.toContain('s3cret');
  });

  test('after it has begun to respond has its connection closed', async () => {
    await using server = await serve(
      guard(
        [rateLimit()],
        async (_request, response) => {
          response.writeHead(200);
          response.write('half');
          throw new Error('too early');
        },
        { onError: () => {} },
      ),
    );
    await expect(fetch(server.origin).then((answer) => answer.text())).rejects.toThrow();
  });
});

test('a stream of Fastify that has begun may outlast the patience of the client', async () => {
  const app = fastify();
  app.register(guardFastify, { parts: [deadline({ timeout: '20ms' })] });
  app.get('/', (request, reply) => {
    const { signal } = contextOf(request)!;
    const stream = new Readable({ read() {} });
    stream.push('begun ');
    signal.addEventListener('abort', () => {
      stream.push('ended');
      stream.push(null);
    });
    reply.send(stream);
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as net.AddressInfo;
  const answer = await fetch(`http://127.0.0.1:${port}/`);
  expect([answer.status, await answer.text()]).toEqual([200, 'begun ended']);
  await app.close();
});

describe.each(frameworks)('$name', ({ serve }) => {
  test('a fallback that throws fails its own request only', async () => {
    const fallback = () => {
      throw new Error('no fallback');
    };
    const busy = Promise.withResolvers<void>();
    const inside = Promise.withResolvers<void>();
    const parts = [degrade({ fallback }), bulkhead({ concurrent: 1, queueMax: 0 })];
    await using server = await serve(parts, async () => {
      inside.resolve();
      await busy.promise;
      return reply(200, 'fine');
    });
    const first = fetch(server.origin);
    await inside.promise;
    const refused = await fetch(server.origin);
    expect(refused.status).toBeGreaterThanOrEqual(500);
    busy.resolve();
    expect(await (await first).text()).toBe('fine');
  });

  test.each([204, 205, 304])('a %i is replayed', async (status) => {
    await using server = await serve([keyed()], () => ({ status, headers: {}, body: null }));
    expect((await post(server.origin)).status).toBe(status);
    const again = await post(server.origin);
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([status, 'true']);
  });

  test('what one host answered is not for another', async () => {
    let fails = false;
    await using server = await serve([degrade()], () => (fails ? reply(500, 'broken') : reply(200, 'of a')));
    const ask = (host: string) =>
      new Promise<string>((resolve) => {
        httpRequest(server.origin, { headers: { host } }, (response) => {
          let all = '';
          response.on('data', (chunk) => (all += chunk)).on('end', () => resolve(all));
        }).end();
      });
    expect(await ask('a.example')).toBe('of a');
    fails = true;
    expect([await ask('b.example'), await ask('a.example')]).toEqual(['broken', 'of a']);
  });
});

test('a cost above the limit is told in whole seconds', async () => {
  const cost = (exchange: { header(name: string): string | undefined }) => Number(exchange.header('x-cost'));
  await using server = await plain.serve([rateLimit({ limits: [{ rate: '2/h' }], cost })], () => reply(200));
  const ask = async (tokens: number) =>
    (await fetch(server.origin, { headers: { 'x-cost': String(tokens) } })).headers.get('ratelimit');
  await ask(2);
  expect(await ask(3)).toMatch(/^"default";r=0;t=\d+$/);
});

test('a second guard does not lengthen patience', async () => {
  const app = express();
  app.use(guardExpress([deadline({ timeout: '1s' })]));
  app.get('/', guardExpress([deadline({ timeout: '1h' })]), (request, response) => {
    response.json(contextOf(request)!.patienceLeft <= 1000);
  });
  await using server = await serve(app);
  expect(await (await fetch(server.origin)).json()).toBe(true);
});

describe('a body that Hono has not read', () => {
  async function honoServer(app: Hono) {
    return new Promise<{ origin: string } & AsyncDisposable>((resolve) => {
      const server = serveFetch({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) =>
        resolve({
          origin: `http://127.0.0.1:${port}`,
          async [Symbol.asyncDispose]() {
            server.close();
            (server as import('node:http').Server).closeAllConnections();
          },
        }),
      );
    });
  }
  test.each<[string, (c: import('hono').Context) => Promise<unknown>]>([
    ['text', (c) => c.req.text()],
    ['raw text', (c) => c.req.raw.text()],
    ['arrayBuffer', async (c) => new TextDecoder().decode(new DataView(await c.req.arrayBuffer()))],
    ['parseBody', async (c) => `a=${(await c.req.parseBody()).a}`],
    ['formData', async (c) => `a=${(await c.req.formData()).get('a')}`],
    ['raw formData', async (c) => `a=${(await c.req.raw.formData()).get('a')}`],
    ['blob', async (c) => (await c.req.blob()).text()],
  ])('is had as %s', async (_name, read) => {
    const app = new Hono();
    app.use(guardHono([keyed()]));
    app.post('/', async (c) => c.text(String(await read(c))));
    app.onError((error, c) => c.text(String(error), 500));
    await using server = await honoServer(app);
    expect(await (await post(server.origin, new URLSearchParams({ a: '1' }))).text()).toBe('a=1');
  });

  test.each(['formData', 'parseBody', 'blob', 'arrayBuffer', 'text'] as const)(
    'or has read as %s before, is told from another',
    async (how) => {
      const app = new Hono();
      app.use(async (c, next) => {
        await c.req[how]();
        await next();
      });
      app.use(guardHono([keyed()]));
      app.post('/', async (c) => c.text('done'));
      await using server = await honoServer(app);
      const type = { 'content-type': 'application/x-www-form-urlencoded' };
      const statuses = [
        (await post(server.origin, 'a=1', type)).status,
        (await post(server.origin, 'a=1', type)).status,
        (await post(server.origin, 'a=2', type)).status,
      ];
      expect(statuses).toEqual([200, 200, 422]);
    },
  );
});

test('a body that a handler of Fastify reads itself is looked at all the same', async () => {
  const app = fastify();
  app.register(guardFastify, { parts: [keyed()] });
  app.addContentTypeParser('application/octet-stream', (_request, payload, done) => done(null, payload));
  app.post('/', async (request) => {
    let all = '';
    for await (const chunk of request.body as Readable) all += chunk;
    return all;
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as net.AddressInfo;
  const send = (body: string) =>
    post(`http://127.0.0.1:${port}/`, body, { 'content-type': 'application/octet-stream' });
  expect(await (await send('one')).text()).toBe('one');
  expect(await (await send('one')).text()).toBe('one');
  expect((await send('two')).status).toBe(422);
  await app.close();
});

test('a Response that Fastify is given frees the key as its status says', async () => {
  let executions = 0;
  const app = fastify();
  app.register(guardFastify, { parts: [keyed()] });
  app.post('/', async () => {
    executions++;
    return new Response('busy', { status: 409 });
  });
  const origin = await app.listen({ port: 0, host: '127.0.0.1' });
  expect(await (await post(origin)).text()).toBe('busy');
  expect(await (await post(origin)).text()).toBe('busy');
  expect(executions).toBe(2);
  await app.close();
});

test.each(frameworks)(
  '$name: a HEAD that gets the last good answer is told how long it was',
  async ({ serve }) => {
    let fails = false;
    await using server = await serve([degrade()], () =>
      fails ? reply(500, 'broken') : { status: 200, headers: { 'content-length': '5' }, body: null },
    );
    const head = async () => {
      const answer = await fetch(server.origin, { method: 'HEAD' });
      return [answer.status, answer.headers.get('content-length')];
    };
    expect(await head()).toEqual([200, '5']);
    fails = true;
    expect(await head()).toEqual([200, '5']);
  },
);

test('a request that waits for another with its key is forgotten when its client disconnects', async () => {
  const { ledger } = memoryEngine();
  let asked = 0;
  const begin: typeof ledger.begin = (claims) => {
    asked++;
    return ledger.begin(claims);
  };
  const part = keyed({ ledger: { ...ledger, begin }, wait: '1h' });
  const release = Promise.withResolvers<void>();
  await using server = await plain.serve([part], async () => {
    await release.promise;
    return reply(200);
  });
  const first = post(server.origin);
  await expect.poll(() => part.counts.executed).toBe(1);
  const leaver = new AbortController();
  const second = post(server.origin, 'one', {}, leaver.signal).catch(() => 'left');
  await expect.poll(() => asked).toBeGreaterThan(1);
  leaver.abort();
  expect(await second).toBe('left');
  await expect.poll(() => part.counts.refused).toBe(1);
  release.resolve();
  await first;
});

test('the end of an empty body that comes in chunks is heard', async () => {
  await using server = await listen(
    createServer(
      guard([keyed()], (request, response) => {
        request.on('data', () => {}).on('end', () => response.end('heard'));
      }),
    ),
  );
  const text = await new Promise((resolve) => {
    const request = httpRequest(
      server.origin,
      { method: 'POST', headers: { 'idempotency-key': 'k', 'transfer-encoding': 'chunked' } },
      (response) => {
        response.on('data', (chunk) => resolve(String(chunk)));
      },
    );
    request.end();
  });
  expect(text).toBe('heard');
});
