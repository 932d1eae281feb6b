import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Server, serve } from '../../http/test/servers.ts';
import type { Gateway } from '../src/index.ts';
import { eventually, RawClient, send, simple, start } from './gateways.ts';

let upstream: Server;
let gateway: Gateway & { url: string };

beforeEach(async () => {
  upstream = await serve({ body: 'served' });
  gateway = await start(simple([upstream]));
});

/** The process lives, and serves the next client. */
afterEach(async () => {
  expect(await send(gateway.url, '/afterwards')).toMatchObject({ status: 200, body: 'served' });
});

const smuggled = 'GET /admin HTTP/1.1\r\nHost: a\r\n\r\n';

/** Each is refused with 400 and the connection is closed: nothing after it is read as a request. */
const refused: readonly [what: string, request: string][] = [
  [
    'CL.TE',
    `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${5 + smuggled.length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  [
    'TE.CL',
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\n${smuggled}\r\n0\r\n\r\n`,
  ],
  [
    'TE.TE: two codings',
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  [
    'TE.TE: an unknown coding',
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  [
    'TE.TE: chunked is not last',
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  [
    'TE.TE: gzip before chunked',
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  [
    'TE.TE: a space before the colon',
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  [
    'TE.TE: a vertical tab',
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  ['TE.TE: quotes', `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n${smuggled}`],
  [
    'a folded header',
    'POST / HTTP/1.1\r\nHost: a\r\nX-A: b\r\n c\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n',
  ],
  ['lines that end with LF alone', 'GET / HTTP/1.1\nHost: a\n\n'],
  ['one header that ends with LF alone', `GET / HTTP/1.1\r\nHost: a\nX-A: b\r\n\r\n`],
  ['a bare CR in a header', 'GET / HTTP/1.1\r\nHost: a\r\nX-A: b\rX-B: c\r\n\r\n'],
  ['NUL in a header', 'GET / HTTP/1.1\r\nHost: a\r\nX-A: b\0c\r\n\r\n'],
  [
    'two equal lengths',
    `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello${smuggled}`,
  ],
  [
    'two different lengths',
    `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 0\r\n\r\nhello${smuggled}`,
  ],
  ['two lengths in one header', `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello${smuggled}`],
  ['a length with a sign', `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello${smuggled}`],
  ['a negative length', `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nhello${smuggled}`],
  ['a hexadecimal length', `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello${smuggled}`],
  ['an endless length', `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\nhello`],
  [
    'a chunk size with a sign',
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n`,
  ],
  [
    'a chunk size that is no number',
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n`,
  ],
  [
    'a chunk that ends with LF alone',
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n`,
  ],
  [
    'a chunk longer than its size',
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n`,
  ],
  [
    'a chunk extension with a bare LF',
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a=\nb\r\nhello\r\n0\r\n\r\n`,
  ],
  ['an absolute form', 'GET http://inside.example/ HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['an authority form', 'GET inside.example:80 HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['an asterisk', 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['no host', 'GET / HTTP/1.1\r\n\r\n'],
  ['two hosts', 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'],
  ['a host with a path', 'GET / HTTP/1.1\r\nHost: a/b\r\n\r\n'],
  ['a host with credentials', 'GET / HTTP/1.1\r\nHost: a@b\r\n\r\n'],
  ['a path that climbs', 'GET /a/../admin HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a path that ends climbing', 'GET /a/.. HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a path with a dot', 'GET /a/./b HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a path with encoded dots', 'GET /a/%2e%2E/admin HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a path with an encoded slash', 'GET /a%2fadmin HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a path with an encoded backslash', 'GET /a%5cadmin HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a path with a backslash', 'GET /a\\..\\admin HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a path with an encoded NUL', 'GET /a%00 HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a path that begins with two slashes', 'GET //inside.example/ HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a fragment', 'GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a GET with a body', `GET / HTTP/1.1\r\nHost: a\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`],
  [
    'a HEAD with a body',
    `HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
  ],
  ['a space before the first header', 'GET / HTTP/1.1\r\n Host: a\r\n\r\n'],
  ['a header without a colon', 'GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n'],
  ['a header name with a space', 'GET / HTTP/1.1\r\nHost: a\r\nX A: b\r\n\r\n'],
  ['an unknown version', 'GET / HTTP/3.7\r\nHost: a\r\n\r\n'],
  ['nonsense', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
];

describe('a request that two servers could read in different ways', () => {
  test.each(refused)('is refused: %s', async (_what, request) => {
    const client = await RawClient.connect(gateway.address.port);
    client.write(request);
    const received = await client.closed();
    expect(received).toMatch(/^HTTP\/1\.1 400 /);
    expect(client.statuses).toEqual([400]);
    // The beginning of a chunked request may have arrived before the mistake in it; what was smuggled has not.
    expect(upstream.seen.map(({ url }) => url)).not.toContain('/admin');
    expect(upstream.seen.filter(({ body }) => body !== '(broken)')).toEqual([]);
  });

  test('with a chunk extension and trailers is framed anew, without them', async () => {
    const client = await RawClient.connect(gateway.address.port);
    client.write(
      'POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;ext="1"\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n',
    );
    await client.until(/served/);
    expect(upstream.seen).toMatchObject([{ url: '/x', body: 'hello', headers: { 'content-length': '5' } }]);
    expect(upstream.seen[0]!.headers).not.toHaveProperty('transfer-encoding');
    client.end();
  });

  test('with `Transfer-Encoding: Chunked` in other letters is the same', async () => {
    const client = await RawClient.connect(gateway.address.port);
    client.write('POST /x HTTP/1.1\r\nHost: a\r\ntransfer-encoding: ChUnKeD\r\n\r\n2\r\nhi\r\n0\r\n\r\n');
    await client.until(/served/);
    expect(upstream.seen).toMatchObject([{ body: 'hi' }]);
    client.end();
  });

  test('to open a tunnel gets none', async () => {
    const client = await RawClient.connect(gateway.address.port);
    client.write('CONNECT inside.example:443 HTTP/1.1\r\nHost: inside.example:443\r\n\r\n');
    expect(await client.closed()).not.toMatch(/^HTTP\/1\.1 2/);
    expect(upstream.seen).toEqual([]);
  });

  test('to change to HTTP/2 without TLS is served as it is', async () => {
    const client = await RawClient.connect(gateway.address.port);
    client.write(
      'GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n',
    );
    await client.until(/served/);
    expect(client.statuses).toEqual([200]);
    expect(upstream.seen[0]!.headers).not.toHaveProperty('upgrade');
    expect(upstream.seen[0]!.headers).not.toHaveProperty('http2-settings');
    client.end();
  });
});

describe('a request that is too much', () => {
  test('of headers is a 431', async () => {
    const client = await RawClient.connect(gateway.address.port);
    client.write(`GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`);
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 431 /);
  });

  test('of connections is refused', async () => {
    const few = await start(simple([upstream], '', '', 'listen: { maxConnectionsPerClient: 2 }'));
    const clients = [await RawClient.connect(few.address.port), await RawClient.connect(few.address.port)];
    const third = await RawClient.connect(few.address.port);
    expect(await third.closed()).toBe('');
    clients[0]!.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await clients[0]!.until(/served/);
    for (const client of clients) client.end();
  });

  test('of time for its headers is a 408 (slowloris)', async () => {
    const strict = await start(simple([upstream], '', '', 'listen: { headersTimeout: 200ms }'));
    const client = await RawClient.connect(strict.address.port);
    client.write('GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ');
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 408 /);
  });

  test('of time for its body is a 408, and the upstream hears nothing of it', async () => {
    const strict = await start(
      simple([upstream], '', '', 'listen: { headersTimeout: 100ms, bodyTimeout: 300ms }'),
    );
    const client = await RawClient.connect(strict.address.port);
    client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx');
    expect(await client.closed()).toMatch(/^(HTTP\/1\.1 408 |$)/);
    expect(upstream.seen).toEqual([]);
  });

  test('of time to read its response is cut off', async () => {
    const endless = await serve((_request, response) => {
      response.writeHead(200);
      const chunk = Buffer.alloc(65_536);
      const push = () => {
        while (response.write(chunk));
        response.once('drain', push);
      };
      push();
    });
    const strict = await start(simple([endless], '', '', 'listen: { writeTimeout: 200ms }'));
    const client = await RawClient.connect(strict.address.port);
    client.socket.pause();
    client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await eventually(() => endless.seen.length === 1);
    await eventually(async () => (await strict.state())[0]!.inFlight === 0);
    client.socket.resume();
    await client.closed();
  });
});
