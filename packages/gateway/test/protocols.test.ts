import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { WebSocket } from 'undici';
import { describe, expect, test } from 'vitest';
import { certificate, serve, serveRaw, serveSecurely } from '../../http/test/servers.ts';
import { eventually, RawClient, send, simple, start } from './gateways.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-gateway-'));
const cert = path.join(folder, 'cert.pem');
const key = path.join(folder, 'key.pem');
writeFileSync(cert, certificate.cert);
writeFileSync(key, certificate.key);

async function http2(
  url: string,
  headers: Record<string, string>,
  body?: string,
): Promise<{
  status: number;
  headers: Record<string, unknown>;
  body: string;
  trailers: Record<string, unknown>;
}> {
  const session = connectHttp2(url, { ca: certificate.cert });
  const stream = session.request(headers);
  let trailers = {};
  stream.on('trailers', (given) => {
    trailers = given;
  });
  stream.end(body);
  const [received] = await once(stream, 'response');
  const answer = await text(stream);
  session.close();
  return { status: Number(received[':status']), headers: received, body: answer, trailers };
}

describe.each([
  ['with TLS', `listen: { tls: { cert: "${cert}", key: "${key}" } }`],
  ['without TLS', 'listen: { http2: true }'],
])('HTTP/2 %s', (_how, listen) => {
  test('comes in, and goes out as HTTP/1.1', async () => {
    const upstream = await serve((request, response) => {
      response.setHeader('set-cookie', ['a=1', 'b=2']);
      response.setHeader('connection', 'keep-alive');
      void text(request).then((body) => response.end(`got ${body}`));
    });
    const { url } = await start(simple([upstream], '', '', listen));
    const answer = await http2(url, { ':path': '/a?b', ':method': 'POST', 'x-given': '1' }, 'a body');
    expect(answer).toMatchObject({
      status: 200,
      body: 'got a body',
      headers: { 'set-cookie': ['a=1', 'b=2'] },
    });
    expect(upstream.seen[0]).toMatchObject({
      method: 'POST',
      url: '/a?b',
      headers: { 'x-given': '1', host: new URL(url).host },
    });
  });

  test('has trailers, and many streams at once', async () => {
    const upstream = await serve((_request, response) => {
      response.write('x');
      response.addTrailers({ 'grpc-status': '0' });
      response.end();
    });
    const { url } = await start(simple([upstream], '', '', listen));
    const all = await Promise.all(Array.from({ length: 20 }, () => http2(url, { ':path': '/' })));
    for (const each of all) expect(each).toMatchObject({ status: 200, trailers: { 'grpc-status': '0' } });
  });

  test('that is reset ends the request of the upstream', async () => {
    let gone = 0;
    const upstream = await serve((request) => {
      request.socket.on('close', () => gone++);
    });
    const { url } = await start(simple([upstream], '', '', listen));
    const session = connectHttp2(url, { ca: certificate.cert });
    const stream = session.request({ ':path': '/' });
    stream.on('error', () => {});
    await eventually(() => upstream.seen.length === 1);
    stream.close(8);
    await eventually(() => gone === 1);
    session.destroy();
  });

  test('with a body that never ends is a 408, and is over', async () => {
    const upstream = await serve(200);
    const limited = listen.replace('{', '{ bodyTimeout: 200ms, headersTimeout: 100ms,');
    const { url, state } = await start(simple([upstream], '', '', limited));
    const session = connectHttp2(url, { ca: certificate.cert });
    const stream = session.request({ ':path': '/', ':method': 'POST' });
    stream.on('error', () => {});
    stream.write('begun');
    const [headers] = await once(stream, 'response');
    expect(headers[':status']).toBe(408);
    await eventually(async () => (await state())[0]!.inFlight === 0);
    expect(upstream.seen).toEqual([]);
    session.destroy();
  });

  test('stands beside HTTP/1.1', async () => {
    const upstream = await serve({ body: 'one' });
    const { url } = await start(simple([upstream], '', '', listen));
    if (url.startsWith('http:')) expect(await send(url)).toMatchObject({ status: 200, body: 'one' });
    else {
      const request = httpsRequest(url, { ca: certificate.cert, agent: false });
      request.end();
      const [response] = await once(request, 'response');
      expect(response.httpVersion).toBe('1.1');
      expect(await text(response)).toBe('one');
      expect(upstream.seen[0]!.headers['x-forwarded-proto']).toBe('https');
    }
  });
});

describe('a listener for both protocols', () => {
  test('does not take a POST that arrives byte by byte for HTTP/2', async () => {
    const upstream = await serve({ body: 'one' });
    const { address } = await start(simple([upstream], '', '', 'listen: { http2: true }'));
    const client = await RawClient.connect(address.port);
    client.socket.setNoDelay(true);
    for (const byte of 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n') {
      client.write(byte);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await client.until(/one/);
    expect(client.statuses).toEqual([200]);
    client.socket.destroy();
  });

  test('closes a connection that sends no request', async () => {
    const upstream = await serve({ body: 'one' });
    const { address } = await start(
      simple([upstream], '', '', 'listen: { http2: true, headersTimeout: 200ms }'),
    );
    const client = await RawClient.connect(address.port);
    client.write('P');
    expect(await client.closed()).toBe('');
  });
});

describe('TLS to an upstream', () => {
  test('is verified', async () => {
    const upstream = await serveSecurely({ body: 'secret' });
    const { url } = await start(simple([upstream]));
    expect(await send(url)).toMatchObject({ status: 502 });
    expect(upstream.seen).toEqual([]);
  });

  test('works with the authority of the file, whatever host the client asked for', async () => {
    const upstream = await serveSecurely({ body: 'secret' });
    const { url } = await start(simple([upstream], `tls: { ca: "${cert}" }`));
    expect(await send(url, '/', { headers: { host: 'shop.example' } })).toMatchObject({ body: 'secret' });
    expect(upstream.seen[0]!.headers.host).toBe('shop.example');
  });

  test('can be left unverified, which the metrics show', async () => {
    const upstream = await serveSecurely({ body: 'secret' });
    const { url, state } = await start(simple([upstream], 'tls: { insecureSkipVerify: true }'));
    expect(await send(url)).toMatchObject({ body: 'secret' });
    expect((await state())[0]!.upstreams[0]!.insecure).toBe(true);
  });

  test('speaks HTTP/2 where the file says so', async () => {
    const upstream = await serveSecurely((request, response) => {
      response.end(request.httpVersion);
    });
    const { url } = await start(simple([upstream], `http2: true\ntls: { ca: "${cert}" }`));
    expect(await send(url)).toMatchObject({ status: 200, body: '2.0' });
  });
});

/** A WebSocket server by hand: it accepts, and sends back what comes. */
async function echo() {
  const { createHash } = await import('node:crypto');
  return serveRaw((socket) => {
    socket.once('data', (chunk) => {
      const [, given] = /sec-websocket-key: (.+)\r\n/i.exec(chunk.toString()) ?? [];
      const accept = createHash('sha1')
        .update(`${given}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
        .digest('base64');
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      );
      socket.on('data', (frame: Buffer) => {
        if ((frame[0]! & 15) === 8) {
          socket.end(Buffer.from([0x88, 0]));
          return;
        }
        const length = frame[1]! & 127;
        const mask = frame.subarray(2, 6);
        const data = frame.subarray(6, 6 + length).map((byte, index) => byte ^ mask[index % 4]!);
        socket.write(Buffer.concat([Buffer.from([0x81, length]), data]));
      });
    });
  });
}

describe('a WebSocket', () => {
  test('passes frames in both directions until one side closes', async () => {
    const upstream = await echo();
    const { address, state } = await start(simple([upstream]));
    const socket = new WebSocket(`ws://127.0.0.1:${address.port}/chat`);
    await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));
    const answers: unknown[] = [];
    socket.addEventListener('message', ({ data }) => answers.push(data));
    socket.send('hello');
    await eventually(() => answers.length === 1);
    socket.send('again');
    await eventually(() => answers.length === 2);
    expect(answers).toEqual(['hello', 'again']);
    expect((await state())[0]!.inFlight).toBe(1);
    socket.close();
    await eventually(async () => (await state())[0]!.inFlight === 0);
    expect((await state())[0]!.routes[0]!.statuses).toMatchObject({ '1xx': 1 });
  });

  test('goes to another instance when one is not there', async () => {
    const upstream = await echo();
    const gone = await echo();
    await gone.close();
    const { address } = await start(
      simple([gone, upstream], 'retry: { attempts: 2 }\nloadBalancing: roundRobin'),
    );
    const socket = new WebSocket(`ws://127.0.0.1:${address.port}/`);
    await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));
    socket.close();
  });

  test('that the upstream refuses is a plain response', async () => {
    const upstream = await serve({ status: 403, body: 'no' });
    const { address } = await start(simple([upstream]));
    const client = await RawClient.connect(address.port);
    client.write(
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n',
    );
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 403 [\s\S]*\r\nno\r\n/);
  });

  test('is refused where the route has none', async () => {
    const upstream = await echo();
    const { address } = await start(simple([upstream], '', 'websocket: false'));
    const client = await RawClient.connect(address.port);
    client.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 426 /);
  });

  test('of a client that vanishes ends at the upstream, too', async () => {
    const upstream = await echo();
    const { address } = await start(simple([upstream]));
    const client = await RawClient.connect(address.port);
    client.write(
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n',
    );
    await client.until(/101/);
    client.end();
    await eventually(() => upstream.open() === 0);
  });
});
