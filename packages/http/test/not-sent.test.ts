import { once } from 'node:events';
import { createServer } from 'node:http';
import { createSecureServer, type Http2Stream } from 'node:http2';
import net, { type AddressInfo, type Socket } from 'node:net';
import { storyOf } from 'holdfast';
import { Agent, type Dispatcher, ProxyAgent, request, fetch as undiciFetch } from 'undici';
import { afterEach, describe, expect, test } from 'vitest';
import { createFetch, retryInterceptor } from '../src/index.ts';
import { certificate, closing, freePort, serve, serveRaw, serveSecurely } from './servers.ts';

const quick = {
  backoff: () => 2,
  budget: { ratio: 1 },
  breaker: false,
  attempts: 3,
  patience: '8s',
} as const;

/** Posts once through each of our doors; tells the status, or the error. */
interface Door {
  post(url: string, body?: string): Promise<unknown>;
}

function doors(options: Agent.Options): [string, () => Door][] {
  return [
    [
      'interceptor',
      () => {
        const agent = closing(new Agent(options));
        const dispatcher = agent.compose(retryInterceptor(quick));
        return {
          async post(url, body = 'pay') {
            const response = await request(url, { method: 'POST', body, dispatcher }).catch(told);
            if (!('statusCode' in response)) return response;
            await response.body.text();
            return response.statusCode;
          },
        };
      },
    ],
    [
      'fetch',
      () => {
        const dispatcher = closing(new Agent(options));
        const fetch = createFetch({
          policy: quick,
          dispatcher,
          fetch: undiciFetch,
        });
        return {
          async post(url, body = 'pay') {
            const response = await fetch(url, { method: 'POST', body }).catch(told);
            if (!(response && 'text' in response)) return response;
            await response.text();
            return response.status;
          },
        };
      },
    ],
  ];
}

const told = (error: Error) => ({ stop: storyOf(error)?.stop, attempts: storyOf(error)?.attempts });
const gaveUp = { stop: 'not_idempotent', attempts: 1 };
const keptTrying = { stop: 'attempts_exhausted', attempts: 3 };

describe.each(doors({ connections: 1 }))('HTTP/1.1, %s', (_name, open) => {
  test('refused: nothing was sent, so a POST is tried again', async () => {
    await expect(open().post(`http://127.0.0.1:${await freePort()}`)).resolves.toEqual(keptTrying);
  });

  test('no such name: the same', async () => {
    await expect(open().post('http://kelp.invalid')).resolves.toEqual(keptTrying);
  });

  test('accepted and closed before a byte was read: ambiguous, so it counts as sent', async () => {
    const server = await serveRaw((socket) => socket.resetAndDestroy());
    const answer = await open().post(server.url);
    // If a single byte could have arrived it must not be repeated; if it was, there is proof that none left.
    if (answer !== gaveUp && (answer as typeof gaveUp).attempts > 1) expect(server.bytes()).toBe(0);
    else expect(answer).toEqual(gaveUp);
  });

  test('reset after the first byte: sent', async () => {
    const server = await serveRaw((socket) => socket.once('data', () => socket.resetAndDestroy()));
    await expect(open().post(server.url)).resolves.toEqual(gaveUp);
    expect(server.connections()).toBe(1);
    expect(server.bytes()).toBeGreaterThan(0);
  });

  test('closed politely after the request was read: sent', async () => {
    const server = await serveRaw((socket) => socket.once('data', () => socket.end()));
    await expect(open().post(server.url)).resolves.toEqual(gaveUp);
    expect(server.connections()).toBe(1);
  });

  test('a kept-alive connection that breaks under the second request: sent', async () => {
    let requests = 0;
    const server = await serveRaw((socket) =>
      socket.on('data', () => {
        if (++requests === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
        else socket.resetAndDestroy();
      }),
    );
    const door = open();
    await expect(door.post(server.url)).resolves.toBe(200);
    const before = server.bytes();
    await expect(door.post(server.url)).resolves.toEqual(gaveUp);
    expect(server.connections()).toBe(1);
    expect(server.bytes()).toBeGreaterThan(before);
  });

  test('an answer that breaks off in its head: sent', async () => {
    const server = await serveRaw((socket) => socket.once('data', () => socket.end('HTTP/1.1 200 O')));
    const answer = await open().post(server.url);
    expect(answer).toMatchObject({ attempts: 1 });
    expect(server.connections()).toBe(1);
  });

  test('whatever happens, a POST that arrived twice would be seen here', async () => {
    const server = await serve((_request, response) => response.destroy(), 200);
    await expect(open().post(server.url)).resolves.toEqual(gaveUp);
    expect(server.seen).toHaveLength(1);
  });
});

/** Takes connections in front of a TLS server, and does to them what `disturb` says. */
async function inFrontOf(port: number, disturb: (client: Socket, connection: number) => boolean) {
  let count = 0;
  return serveRaw((client) => {
    if (disturb(client, ++count)) return;
    const upstream = net.connect(port, '127.0.0.1');
    upstream.on('error', () => client.destroy());
    client.on('error', () => upstream.destroy());
    client.pipe(upstream).pipe(client);
  });
}

const protocols: [string, Agent.Options][] = [
  ['TLS', { allowH2: false, connect: { ca: certificate.cert } }],
  [
    'HTTP/2',
    { allowH2: true, connect: { ca: certificate.cert, preferH2: true } as Agent.Options['connect'] & object },
  ],
];

for (const [protocol, options] of protocols) {
  describe.each(doors(options))(`${protocol}, %s`, (_name, open) => {
    test('works at all', async () => {
      const server = await serveSecurely(200);
      await expect(open().post(server.url)).resolves.toBe(200);
      expect(server.seen[0]).toMatchObject({ method: 'POST', body: 'pay' });
      expect(server.seen[0]?.headers[':method'] !== undefined).toBe(protocol === 'HTTP/2');
    });

    test.each([
      ['reset', (socket: Socket) => socket.resetAndDestroy()],
      ['closed', (socket: Socket) => socket.destroy()],
    ])(
      '%s during the handshake: no byte of the request left, so a POST is tried again',
      async (_how, end) => {
        const server = await serveSecurely(200);
        const proxy = await inFrontOf(server.port, (client, connection) => {
          if (connection > 2) return false;
          client.once('data', () => end(client));
          return true;
        });
        await expect(open().post(`https://localhost:${proxy.port}`)).resolves.toBe(200);
        // The request itself was received once, and whole.
        expect(server.seen.map(({ body }) => body)).toEqual(['pay']);
      },
    );

    test('a certificate that nobody knows is not tried again', async () => {
      const server = await serveSecurely(200);
      const [[, stranger]] = doors({ ...options, connect: {} }) as [[string, () => Door]];
      await expect(stranger().post(server.url)).resolves.toEqual({ stop: 'not_retryable', attempts: 1 });
    });

    test('broken after the request was read: sent', async () => {
      const server = await serveSecurely((incoming) => {
        incoming.resume().on('end', () => incoming.socket?.destroy());
        const stream = (incoming as unknown as { stream?: Http2Stream }).stream;
        stream?.session?.destroy();
      });
      const answer = await open().post(server.url);
      expect(answer).toMatchObject({ attempts: 1 });
      expect(server.seen).toHaveLength(1);
    });
  });
}

describe('a proxy that opens no tunnel', () => {
  /** Answers each CONNECT with one of these; a tunnel is opened with 200. */
  async function proxy(target: number, ...statuses: number[]): Promise<ProxyAgent> {
    const server = createServer();
    server.on('connect', (_request, socket: Socket) => {
      const status = statuses.shift();
      if (status !== 200) return socket.end(`HTTP/1.1 ${status} As It Is\r\n\r\n`);
      const onward = net.connect(target, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 As It Is\r\n\r\n');
        onward.pipe(socket).pipe(onward);
      });
      onward.on('error', () => {});
      return socket.on('error', () => {});
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closing({ close: async () => server.close() });
    const uri = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return closing(new ProxyAgent({ uri, proxyTunnel: true }));
  }

  function post(url: string, agent: ProxyAgent, by: string): Promise<unknown> {
    const init = { method: 'POST', body: 'pay' } as const;
    if (by === 'fetch') return createFetch({ policy: quick, dispatcher: agent })(url, init);
    return request(url, { ...init, dispatcher: agent.compose(retryInterceptor(quick)) });
  }

  test.each(['interceptor', 'fetch'])(
    'for now: nothing was sent, so it is tried again, by %s',
    async (by) => {
      const server = await serve(200);
      await post(server.url, await proxy(server.port, 503, 502, 200), by);
      expect(server.seen).toHaveLength(1);
    },
  );

  test.each(['interceptor', 'fetch'])('to us: that is no use, by %s', async (by) => {
    const server = await serve(200);
    const error = await post(server.url, await proxy(server.port, 407, 200), by).catch(told);
    expect(error).toEqual({ stop: 'not_retryable', attempts: 1 });
  });
});

describe('HTTP/2 says itself what was not processed', () => {
  const closers: (() => void)[] = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });

  test('a refused stream is tried again, and executed once', async () => {
    let refusals = 0;
    const done: string[] = [];
    const server = createSecureServer(certificate);
    server.on('stream', (stream, headers) => {
      stream.on('error', () => {});
      if (++refusals <= 2) {
        stream.close(7);
        return;
      }
      done.push(String(headers[':path']));
      stream.respond({ ':status': 200 });
      stream.end('paid');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closers.push(() => server.close());
    const agent = closing(new Agent({ allowH2: true, connect: { ca: certificate.cert } }));
    const dispatcher: Dispatcher = agent.compose(retryInterceptor(quick));
    const url = `https://localhost:${(server.address() as AddressInfo).port}/pay`;
    const { statusCode, body } = await request(url, { method: 'POST', body: 'pay', dispatcher });
    expect(statusCode).toBe(200);
    await body.text();
    expect(done).toEqual(['/pay']);
  });
});

describe.each([0, 2, 8])('a stream of HTTP/2 that is closed with code %i', (code) => {
  const hang = (_request: unknown, response: unknown) => {
    (response as { stream: Http2Stream }).stream.close(code);
  };
  const options = { allowH2: true, connect: { ca: certificate.cert } };

  test('may have been processed: a GET is repeated', async () => {
    const agent = closing(new Agent(options));
    const fetch = createFetch({ policy: quick, dispatcher: agent, fetch: undiciFetch });
    const forFetch = await serveSecurely(hang, 200);
    expect((await fetch(forFetch.url)).status).toBe(200);
    const forRequest = await serveSecurely(hang, 200);
    const dispatcher = agent.compose(retryInterceptor(quick));
    const { statusCode, body } = await request(forRequest.url, { dispatcher });
    await body.dump();
    expect(statusCode).toBe(200);
  });

  test.each(doors(options))('and a POST is not, by %s', async (_name, open) => {
    const server = await serveSecurely(hang, 200);
    expect(await open().post(server.url)).toMatchObject({ attempts: 1 });
    expect(server.seen).toHaveLength(1);
  });
});
