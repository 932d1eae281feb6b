import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { describe, expect, test } from 'vitest';
import { serve, serveRaw } from '../../http/test/servers.ts';
import { eventually, RawClient, send, simple, start } from './gateways.ts';

describe('a request', () => {
  test('reaches the upstream with its method, path, query and body', async () => {
    const upstream = await serve({ status: 201, headers: { 'x-made': 'yes' }, body: 'made' });
    const { url } = await start(simple([upstream]));

    const answer = await send(url, '/orders/1?a=b%2Fc&d', { method: 'POST', body: 'the order' });

    expect(answer).toMatchObject({ status: 201, body: 'made', headers: { 'x-made': 'yes' } });
    expect(upstream.seen).toMatchObject([{ method: 'POST', url: '/orders/1?a=b%2Fc&d', body: 'the order' }]);
  });

  test('has an id that the response carries, too', async () => {
    const upstream = await serve(200);
    const { url } = await start(simple([upstream]));
    const { headers } = await send(url, '/', { headers: { 'x-request-id': 'chosen by a stranger' } });
    expect(headers['x-request-id']).toMatch(/^[a-z0-9]{12}-1$/);
    expect(upstream.seen[0]!.headers['x-request-id']).toBe(headers['x-request-id']);
  });

  test('loses what belongs to one connection, and what the client lists in Connection', async () => {
    const upstream = await serve(200);
    const { url } = await start(simple([upstream]));
    await send(url, '/', {
      headers: {
        connection: 'keep-alive, x-private',
        'keep-alive': 'timeout=5',
        'proxy-connection': 'keep-alive',
        'proxy-authorization': 'Basic eDp5',
        te: 'trailers',
        'x-private': '1',
        'x-public': '2',
      },
    });
    const { headers } = upstream.seen[0]!;
    expect(headers).toMatchObject({ 'x-public': '2', connection: 'keep-alive' });
    for (const name of [
      'x-private',
      'keep-alive',
      'proxy-connection',
      'proxy-authorization',
      'te',
      'trailer',
    ])
      expect(headers).not.toHaveProperty(name);
  });

  test('may not use Connection to remove what protects it', async () => {
    const upstream = await serve(200);
    const { url } = await start(simple([upstream]));
    const headers = { connection: 'authorization', authorization: 'Bearer x' };
    expect(await send(url, '/', { headers })).toMatchObject({ status: 400 });
    expect(upstream.seen).toEqual([]);
  });

  test('from a stranger says nothing about where it came from', async () => {
    const upstream = await serve(200);
    const { url } = await start(simple([upstream]));
    await send(url, '/', {
      headers: {
        host: 'shop.example',
        'x-forwarded-for': '6.6.6.6',
        'x-forwarded-proto': 'https',
        'x-real-ip': '6.6.6.6',
        forwarded: 'for=6.6.6.6',
      },
    });
    const { headers } = upstream.seen[0]!;
    expect(headers).toMatchObject({
      host: 'shop.example',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
    });
    expect(headers).not.toHaveProperty('forwarded');
    expect(headers).not.toHaveProperty('x-real-ip');
  });

  test('from a trusted proxy keeps its way, and the proxy is added to it', async () => {
    const upstream = await serve(200);
    const { url } = await start(simple([upstream], '', '', 'listen: { trustedProxies: [127.0.0.1] }'));
    await send(url, '/', {
      headers: {
        'x-forwarded-for': '203.0.113.9',
        'x-forwarded-proto': 'https',
        forwarded: 'for=203.0.113.9',
        'x-request-id': 'from-the-edge',
      },
    });
    expect(upstream.seen[0]!.headers).toMatchObject({
      'x-forwarded-for': '203.0.113.9, 127.0.0.1',
      'x-forwarded-proto': 'https',
      forwarded: expect.stringMatching(/^for=203\.0\.113\.9, for=127\.0\.0\.1;host=".+";proto=http$/),
      'x-request-id': 'from-the-edge',
    });
  });

  test('has its headers changed as the route says', async () => {
    const upstream = await serve({ headers: { server: 'old', 'x-keep': '1' } });
    const route = `
rewrite: /v2
match: /shop
headers:
  request: { set: { x-added: "1", host: inside.example }, remove: [cookie] }
  response: { set: { x-frame-options: DENY }, remove: [server] }`;
    const { url } = await start(simple([upstream], '', route));
    const { headers } = await send(url, '/shop/a?b=c', { headers: { cookie: 'secret=1' } });
    expect(upstream.seen[0]).toMatchObject({
      url: '/v2/a?b=c',
      headers: { 'x-added': '1', host: 'inside.example', 'x-forwarded-host': expect.any(String) },
    });
    expect(upstream.seen[0]!.headers).not.toHaveProperty('cookie');
    expect(headers).toMatchObject({ 'x-frame-options': 'DENY', 'x-keep': '1' });
    expect(headers).not.toHaveProperty('server');
  });

  test('without a route is a 404, and with a method that no route has a 405', async () => {
    const upstream = await serve(200);
    const { url } = await start(simple([upstream], '', 'match: { path: /a, methods: [GET] }'));
    expect(await send(url, '/b')).toMatchObject({ status: 404 });
    expect(await send(url, '/a', { method: 'DELETE' })).toMatchObject({ status: 405 });
    expect(await send(url, '/a/b')).toMatchObject({ status: 200 });
  });
});

describe('a body', () => {
  test('streams to the upstream while the client still sends it', async () => {
    let first: (() => void) | undefined;
    const arrived = new Promise<void>((resolve) => {
      first = resolve;
    });
    const upstream = await serve((request, response) => {
      request.once('data', () => first!());
      request.on('end', () => response.end('done')).resume();
    });
    const { url } = await start(simple([upstream], '', '', 'keptBody: 1KiB'));
    const request = httpRequest(url, { method: 'PUT' });
    request.write('x'.repeat(5000));

    await arrived;

    request.end('the end');
    const [response] = await once(request, 'response');
    expect(response.statusCode).toBe(200);
  });

  test('comes back while the upstream still sends it', async () => {
    let finish: (() => void) | undefined;
    const upstream = await serve((_request, response) => {
      response.write('first');
      finish = () => response.end('second');
    });
    const { url } = await start(simple([upstream]));
    const request = httpRequest(url);
    request.end();
    const [response] = await once(request, 'response');
    const [chunk] = await once(response, 'data');
    expect(String(chunk)).toBe('first');
    finish!();
    const [rest] = await once(response, 'data');
    expect(String(rest)).toBe('second');
  });

  test('waits for a client that reads slowly', async () => {
    let written = 0;
    const upstream = await serve((_request, response) => {
      const chunk = Buffer.alloc(65_536);
      const push = () => {
        while (written < 200 * chunk.length) {
          written += chunk.length;
          if (!response.write(chunk)) {
            response.once('drain', push);
            return;
          }
        }
        response.end();
      };
      push();
    });
    const { url } = await start(simple([upstream]));
    const request = httpRequest(url);
    request.end();
    const [response] = await once(request, 'response');
    response.pause();
    let before = -1;
    // The upstream stops when the buffers on the way are full, long before its 13 MB.
    await eventually(async () => {
      const now = written;
      await new Promise((resolve) => setTimeout(resolve, 50));
      const isStill = now === written && now === before;
      before = now;
      return isStill;
    });
    expect(written).toBeLessThan(200 * 65_536);
    let received = 0;
    for await (const chunk of response) received += chunk.length;
    expect(received).toBe(200 * 65_536);
  });

  test('of a slow upstream makes a client that sends quickly wait', async () => {
    let reading: (() => void) | undefined;
    const upstream = await serve((request, response) => {
      request.pause();
      reading = () => {
        let length = 0;
        request.on('data', (chunk) => {
          length += chunk.length;
        });
        request.on('end', () => response.end(String(length))).resume();
      };
    });
    const { url } = await start(simple([upstream], '', 'maxBody: 100MiB'));
    const request = httpRequest(url, { method: 'PUT', headers: { 'content-length': 20_000_000 } });
    let sent = 0;
    const chunk = Buffer.alloc(100_000);
    while (sent < 20_000_000 && request.write(chunk)) sent += chunk.length;
    sent += sent < 20_000_000 ? chunk.length : 0;
    await eventually(() => reading);
    expect(sent).toBeLessThan(20_000_000);
    reading!();
    while (sent < 20_000_000) {
      if (!request.write(chunk)) await once(request, 'drain');
      sent += chunk.length;
    }
    request.end();
    const [response] = await once(request, 'response');
    const [body] = await once(response, 'data');
    expect(String(body)).toBe('20000000');
  });

  test('above the limit is a 413, with and without a length', async () => {
    const upstream = await serve((request, response) => {
      request.on('error', () => {}).resume();
      request.on('end', () => response.end());
    });
    const { url } = await start(simple([upstream], '', 'maxBody: 100KiB'));
    const tooLong = 'x'.repeat(200_000);
    expect(await send(url, '/', { method: 'POST', body: tooLong })).toMatchObject({ status: 413 });
    const chunked = { 'transfer-encoding': 'chunked' };
    expect(await send(url, '/', { method: 'POST', body: tooLong, headers: chunked })).toMatchObject({
      status: 413,
    });
    expect(await send(url, '/', { method: 'POST', body: 'short', headers: chunked })).toMatchObject({
      status: 200,
    });
  });

  test('of a HEAD request is only announced; 204 and 304 have none', async () => {
    const upstream = await serve(
      (_request, response) => response.writeHead(200, { 'content-length': 5 }).end(),
      { status: 204, body: '' },
      { status: 304, headers: { etag: '"1"' }, body: '' },
    );
    const { url } = await start(simple([upstream]));
    expect(await send(url, '/', { method: 'HEAD' })).toMatchObject({
      status: 200,
      headers: { 'content-length': '5' },
    });
    expect(await send(url)).toMatchObject({ status: 204, body: '' });
    expect(await send(url)).toMatchObject({ status: 304, headers: { etag: '"1"' }, body: '' });
  });

  test('is not called for before a client that expects 100-continue may send it', async () => {
    const upstream = await serve({ body: 'thanks' });
    const { url, address } = await start(simple([upstream], '', 'maxBody: 10B'));
    const client = await RawClient.connect(address.port);
    client.write('POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n');
    await client.until(/100 Continue/);
    client.write('hello');
    await client.until(/thanks/);
    expect(upstream.seen).toMatchObject([{ body: 'hello' }]);
    expect(upstream.seen[0]!.headers).not.toHaveProperty('expect');

    const refused = await send(url, '/', {
      method: 'POST',
      headers: { expect: '100-continue', 'content-length': '11' },
    });
    expect(refused.status).toBe(413);
    client.end();
  });

  test('that breaks off is not taken for the whole', async () => {
    const upstream = await serveRaw((socket) => {
      socket.once('data', () => {
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this');
      });
    });
    const { url } = await start(simple([upstream]));
    await expect(send(url)).rejects.toThrow(/aborted|socket hang up|ECONNRESET/);
  });
});

describe('a response', () => {
  test('keeps its cookies apart and loses what belongs to one connection', async () => {
    const upstream = await serve((_request, response) => {
      response.setHeader('set-cookie', ['a=1', 'b=2']);
      response.setHeader('x-hop', '1');
      response.setHeader('connection', 'x-hop');
      response.setHeader('proxy-authenticate', 'Basic');
      response.end('x');
    });
    const { url } = await start(simple([upstream]));
    const { headers } = await send(url);
    expect(headers['set-cookie']).toEqual(['a=1', 'b=2']);
    expect(headers).not.toHaveProperty('x-hop');
    expect(headers).not.toHaveProperty('proxy-authenticate');
  });

  test('has trailers', async () => {
    const upstream = await serve((_request, response) => {
      response.setHeader('trailer', 'x-sum');
      response.write('body');
      response.addTrailers({ 'x-sum': '42' });
      response.end();
    });
    const { url } = await start(simple([upstream]));
    expect(await send(url)).toMatchObject({ body: 'body', trailers: { 'x-sum': '42' } });
  });

  test('of server-sent events arrives event by event', async () => {
    let push: ((event: string) => void) | undefined;
    const upstream = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
      push = (event) => response.write(`data: ${event}\n\n`);
    });
    const { url } = await start(simple([upstream]));
    const request = httpRequest(url);
    request.end();
    const [response] = await once(request, 'response');
    expect(response.headers['content-type']).toBe('text/event-stream');
    push!('one');
    expect(String((await once(response, 'data'))[0])).toBe('data: one\n\n');
    push!('two');
    expect(String((await once(response, 'data'))[0])).toBe('data: two\n\n');
    request.destroy();
  });

  test('of early hints goes before the response', async () => {
    const upstream = await serve((_request, response) => {
      response.writeEarlyHints({ link: '</a.css>; rel=preload' }, () => response.end('done'));
    });
    const { url } = await start(simple([upstream]));
    const request = httpRequest(url);
    request.end();
    const answered = once(request, 'response');
    const [information] = await once(request, 'information');
    expect(information).toMatchObject({ statusCode: 103, headers: { link: '</a.css>; rel=preload' } });
    const [response] = await answered;
    response.resume();
    await once(response, 'end');
  });
});

describe('a client that gives up', () => {
  test('while it waits for the response ends the request of the upstream', async () => {
    let gone = 0;
    const upstream = await serve((request) => {
      request.socket.on('close', () => gone++);
    });
    const { url, state } = await start(simple([upstream]));
    const request = httpRequest(url);
    request.on('error', () => {});
    request.end();
    await eventually(() => upstream.seen.length === 1);
    request.destroy();
    await eventually(() => gone === 1);
    const [worker] = await state();
    expect(worker!.routes[0]).toMatchObject({ statuses: { aborted: 1 } });
    expect(worker!.upstreams[0]!.policies[0]!.stops).toEqual({ cancelled: 1 });
  });

  test('while it gets the response ends the request of the upstream', async () => {
    let gone = 0;
    const upstream = await serve((request, response) => {
      response.write('begun');
      request.socket.on('close', () => gone++);
    });
    const { url } = await start(simple([upstream]));
    const request = httpRequest(url);
    request.on('error', () => {});
    request.end();
    const [response] = await once(request, 'response');
    response.on('error', () => {});
    await once(response, 'data');
    request.destroy();
    await eventually(() => gone === 1);
  });

  test('while it sends its body ends the request of the upstream', async () => {
    let gone = 0;
    const upstream = await serve((request) => {
      request.on('error', () => {}).resume();
      request.socket.on('close', () => gone++);
    });
    const { url } = await start(simple([upstream], '', '', 'keptBody: 0'));
    const request = httpRequest(url, { method: 'POST' });
    request.on('error', () => {});
    request.write('begun');
    await eventually(() => upstream.seen.length === 1);
    request.destroy();
    await eventually(() => gone === 1);
  });
});

describe('connections', () => {
  test('to the upstream are kept', async () => {
    const upstream = await serve(200);
    const { url } = await start(simple([upstream]));
    for (let count = 0; count < 5; count++) await send(url);
    expect(upstream.connections()).toBe(1);
  });

  test('of a client are kept, and take several requests at once', async () => {
    const upstream = await serve({ body: 'one' }, { body: 'two' });
    const { address } = await start(simple([upstream]));
    const client = await RawClient.connect(address.port);
    client.write('GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n');
    const received = await client.until(/one[\s\S]*two/);
    expect(received.match(/HTTP\/1\.1 200/g)).toHaveLength(2);
    client.end();
  });
});
