import { once } from 'node:events';
import {
  connect as connectHttp2,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { memoryEngine } from '@holdfast/contracts/memory';
import { serve as serveFetch } from '@hono/node-server';
import fastify from 'fastify';
import { Hono } from 'hono';
import { describe, expect, test } from 'vitest';
import { guard as guardFastify } from '../src/fastify.ts';
import { guard as guardHono } from '../src/hono.ts';
import {
  bulkhead,
  contextOf,
  degrade,
  gracefulShutdown,
  type IdempotencyOptions,
  idempotency,
  type Part,
  type RequestContext,
  shed,
} from '../src/index.ts';
import { guard as guardNode } from '../src/node.ts';

interface Call {
  readonly path: string;
  readonly body: string;
  readonly context: RequestContext;
}

type Handler = (call: Call) => readonly [status: number, body: string] | Promise<readonly [number, string]>;

const frameworks: readonly {
  name: string;
  serve(parts: readonly Part[], handler: Handler): Promise<Http2Server>;
}[] = [
  {
    name: 'node:http2',
    serve: (parts, handler) =>
      listen(
        guardNode(parts, async (request, response) => {
          const context = contextOf(request)!;
          let body = '';
          for await (const chunk of request) body += chunk;
          const [status, answer] = await handler({ path: request.url!, body, context });
          response.writeHead(status, { 'content-type': 'text/plain' }).end(answer);
        }),
      ),
  },
  {
    name: 'Fastify',
    async serve(parts, handler) {
      const app = fastify({ http2: true });
      app.register(guardFastify as never, { parts });
      app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
      app.all('/*', async (request, reply) => {
        const { url: path, body } = request;
        const [status, answer] = await handler({
          path,
          body: (body as string | undefined) ?? '',
          context: contextOf(request)!,
        });
        return reply.code(status).send(answer);
      });
      await app.listen({ port: 0, host: '127.0.0.1' });
      return app.server as Http2Server;
    },
  },
  {
    name: 'Hono',
    serve(parts, handler) {
      const app = new Hono();
      app.use(guardHono(parts));
      app.all('*', async (c) => {
        const [status, answer] = await handler({
          path: c.req.path,
          body: await c.req.text(),
          context: contextOf(c)!,
        });
        return c.text(answer, status as 200);
      });
      return new Promise((resolve) => {
        const { fetch } = app;
        const server = serveFetch({ fetch, createServer, port: 0, hostname: '127.0.0.1' }, () =>
          resolve(server as Http2Server),
        );
      });
    },
  },
];

function listen(handler: ReturnType<typeof guardNode>): Promise<Http2Server> {
  const server = createServer(handler as never);
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

/** A client with one connection, which ends with its server. */
function clientOf(server: Http2Server) {
  let socket!: Socket;
  const session = connectHttp2('http://one.example', {
    createConnection: () => {
      socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
      return socket;
    },
  });
  session.on('error', () => {});

  function begin(headers: OutgoingHttpHeaders) {
    const stream = session.request(headers, { endStream: false });
    stream.on('error', () => {});
    return stream;
  }

  function ask(headers: OutgoingHttpHeaders, body = '') {
    return new Promise<{ status: number | undefined; body: string; headers: IncomingHttpHeaders }>(
      (resolve) => {
        let all = '';
        let head: IncomingHttpHeaders & { ':status'?: number | undefined } = {};
        begin(headers)
          .on('response', (given) => {
            head = given;
          })
          .on('data', (chunk) => {
            all += chunk;
          })
          .on('close', () => resolve({ status: head[':status'], body: all, headers: head }))
          .end(body);
      },
    );
  }

  const post = (key: string, body: string) =>
    ask({ ':method': 'POST', ':path': '/', 'idempotency-key': key, 'content-type': 'text/plain' }, body);
  return {
    begin,
    ask,
    post,
    lose: () => socket.resetAndDestroy(),
    [Symbol.dispose]() {
      session.destroy();
      server.close();
    },
  };
}

const keyed = (options: Partial<IdempotencyOptions> = {}) =>
  idempotency({ ledger: memoryEngine().ledger, scope: 'public', ...options });

describe.each(frameworks)('over HTTP/2, with $name', ({ serve }) => {
  test('a request with a key is executed once, with its whole body, and replayed', async () => {
    let calls = 0;
    using client = clientOf(await serve([keyed()], ({ body }) => [201, `${++calls}: ${body}`]));
    for (const body of ['', 'short', 'long'.repeat(50_000)]) {
      const key = `k${body.length}`;
      const first = await client.post(key, body);
      expect([first.status, first.body.slice(first.body.indexOf(' ') + 1)]).toEqual([201, body]);
      const again = await client.post(key, body);
      expect([again.body, again.headers['idempotent-replayed']]).toEqual([first.body, 'true']);
    }
    expect((await client.post('a, b', 'two keys')).status).toBe(400);
    expect(calls).toBe(3);
  });

  test('a server ends gracefully: requests that run are answered, and the session of a client is closed', async () => {
    const running = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<void>();
    const server = await serve([], async ({ path }) => {
      if (path === '/slow') {
        running.resolve();
        await finish.promise;
      }
      return [200, path];
    });
    using client = clientOf(server);
    const drained = Promise.withResolvers<void>();
    const { shutdown, signal } = gracefulShutdown(server, {
      before: () => drained.promise,
      drainDelay: '1ms',
      signals: [],
    });
    const slow = client.ask({ ':path': '/slow' });
    await running.promise;
    const ending = shutdown();
    // While the server drains, it still answers.
    expect([signal.aborted, (await client.ask({ ':path': '/late' })).status]).toEqual([true, 200]);
    drained.resolve();
    await expect.poll(() => server.listening).toBe(false);
    finish.resolve();
    expect([(await slow).body, await ending]).toEqual(['/slow', 0]);
  });

  test('what one host answered is not for another', async () => {
    let fails = false;
    using client = clientOf(await serve([degrade()], () => (fails ? [500, 'broken'] : [200, 'of a'])));
    const ask = async (host: string) => (await client.ask({ ':path': '/', ':authority': host })).body;
    expect(await ask('a.example')).toBe('of a');
    fails = true;
    expect([await ask('b.example'), await ask('a.example')]).toEqual(['broken', 'of a']);
  });

  test('a client that leaves is noticed, and its permits return', async () => {
    const limit = bulkhead({ concurrent: 2 });
    const shedding = shed();
    const reasons: unknown[] = [];
    using client = clientOf(
      await serve([limit, shedding], ({ path, context: { signal } }) => {
        if (path !== '/hang') return [200, ''];
        return new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            reasons.push(signal.reason);
            resolve([200, '']);
          });
        });
      }),
    );
    const hanging = client.begin({ ':path': '/hang' }).end();
    await expect.poll(() => limit.inFlight).toBe(1);
    hanging.close(8);
    await expect.poll(() => [limit.inFlight, shedding.inFlight]).toEqual([0, 0]);
    expect(reasons).toMatchObject([{ code: 'HOLDFAST_CLIENT_GONE' }]);

    expect((await client.ask({ ':path': '/' })).status).toBe(200);
    await expect.poll(() => [limit.inFlight, shedding.inFlight]).toEqual([0, 0]);
    expect(reasons).toHaveLength(1);
  });
});

test('an answer over HTTP/2 returns its permit, also to a client that never stops sending', async () => {
  const limit = bulkhead({ concurrent: 2 });
  using client = clientOf(await listen(guardNode([limit, keyed({ bodyMax: 10 })], () => {})));
  const sending = client.begin({ ':method': 'POST', ':path': '/', 'idempotency-key': 'k' });
  sending.write('more than ten bytes');
  const [head] = await once(sending, 'response');
  expect(head[':status']).toBe(413);
  await expect.poll(() => limit.inFlight).toBe(0);
  expect(sending.closed).toBe(false);
});

test('half a request over HTTP/2 is not executed when its connection is lost', async () => {
  const keys: unknown[] = [];
  const errors: unknown[] = [];
  const begun = Promise.withResolvers<void>();
  const lost = Promise.withResolvers<void>();
  const guarded = guardNode(
    [keyed()],
    (request, response) => {
      keys.push(request.headers['idempotency-key']);
      response.end();
    },
    { onError: (error) => errors.push(error) },
  );
  const server = await listen((request, response) => {
    guarded(request, response);
    request.on('readable', begun.resolve);
    response.on('close', lost.resolve);
  });
  using client = clientOf(server);
  client.begin({ ':method': 'POST', ':path': '/', 'idempotency-key': 'half' }).write('half');
  await begun.promise;
  client.lose();
  await lost.promise;
  using other = clientOf(server);
  await other.post('whole', 'whole');
  expect([keys, errors]).toEqual([['whole'], []]);
});
