import { mkdtempSync, readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { serve } from '../../http/test/servers.ts';
import { eventually, RawClient, send, simple, start } from './gateways.ts';

describe('a rate limit', () => {
  test('for all callers refuses what is above the burst', async () => {
    const upstream = await serve(200);
    const gateway = await start(
      simple([upstream], '', 'rateLimiting: { requestsPerSecond: 0.01, burstSize: 2 }'),
    );
    const statuses = [];
    for (let count = 0; count < 3; count++) statuses.push((await send(gateway.url)).status);
    expect(statuses).toEqual([200, 200, 429]);
    expect(upstream.seen.length).toBe(2);
    const [worker] = await gateway.state();
    expect(worker!.routes[0]).toMatchObject({ refused: 1, inFlight: 0, statuses: { '2xx': 2, '4xx': 1 } });
    expect(worker!.protections[0]).toMatchObject({ name: 'route everything rateLimiting', refused: 1 });
  });

  test('by a header gives each value its own', async () => {
    const upstream = await serve(200);
    const gateway = await start(
      simple(
        [upstream],
        '',
        'rateLimiting: { requestsPerSecond: 0.01, burstSize: 1, key: "header:x-api-key" }',
      ),
    );
    const as = (key: string) => send(gateway.url, '/', { headers: { 'x-api-key': key } });
    expect([(await as('a')).status, (await as('b')).status, (await as('a')).status]).toEqual([200, 200, 429]);
  });

  test('by client sees through trusted proxies', async () => {
    const upstream = await serve(200);
    const gateway = await start(
      simple(
        [upstream],
        '',
        'rateLimiting: { requestsPerSecond: 0.01, burstSize: 1, key: client }',
        'listen: { trustedProxies: [127.0.0.1] }',
      ),
    );
    const from = (address: string) => send(gateway.url, '/', { headers: { 'x-forwarded-for': address } });
    expect((await from('203.0.113.1')).status).toBe(200);
    expect((await from('203.0.113.2')).status).toBe(200);
    expect((await from('203.0.113.1')).status).toBe(429);
  });

  test('of an upstream counts all its routes together', async () => {
    const upstream = await serve(200);
    const gateway = await start(`
admin: false
upstreams:
  api: { instances: ["${upstream.url}"], rateLimiting: { requestsPerSecond: 0.01, burstSize: 2 } }
routes: [{ match: /a, upstream: api }, { match: /b, upstream: api }]
`);
    const statuses = [];
    for (const path of ['/a', '/b', '/a', '/b']) statuses.push((await send(gateway.url, path)).status);
    expect(statuses).toEqual([200, 200, 429, 429]);
  });
});

describe('a bulkhead', () => {
  test('lets so many requests through, queues some, and refuses the rest', async () => {
    const answers: (() => void)[] = [];
    const upstream = await serve((_request, response) => {
      answers.push(() => response.end('done'));
    });
    const gateway = await start(
      simple([upstream], 'bulkhead: { maxConcurrentRequests: 2, maxQueuedRequests: 1, queueTimeout: 1m }'),
    );
    const first = [send(gateway.url), send(gateway.url)];
    await eventually(() => answers.length === 2);
    const queued = send(gateway.url);
    await eventually(async () => (await gateway.state())[0]!.protections[0]!.queued === 1);
    expect(await send(gateway.url)).toMatchObject({ status: 503, headers: { holdfast: 'retry=safe' } });
    expect(answers.length).toBe(2);
    answers[0]!();
    await eventually(() => answers.length === 3);
    for (const answer of answers.slice(1)) answer();
    expect((await Promise.all([...first, queued])).map(({ status }) => status)).toEqual([200, 200, 200]);
    await eventually(async () => (await gateway.state())[0]!.protections[0]!.inFlight === 0);
  });

  test('gets its permit back from a client that gives up', async () => {
    const upstream = await serve(() => {}, { body: 'second' });
    const gateway = await start(
      simple([upstream], 'bulkhead: { maxConcurrentRequests: 1, maxQueuedRequests: 0 }'),
    );
    const request = httpRequest(gateway.url);
    request.on('error', () => {});
    request.end();
    await eventually(() => upstream.seen.length === 1);
    request.destroy();
    await eventually(async () => (await send(gateway.url)).status === 200);
  });
});

describe('shedding', () => {
  test('refuses the least important first', async () => {
    const answers: (() => void)[] = [];
    const upstream = await serve((_request, response) => {
      answers.push(() => response.end());
    });
    const gateway = await start(`
admin: false
upstreams:
  api:
    instances: ["${upstream.url}"]
    shedding: { initial: 4, floor: 4, ceiling: 4, reserve: 0.5, maxQueuedRequests: 0 }
routes:
  - { match: /bulk, upstream: api, priority: sheddable }
  - { match: /pay, upstream: api, priority: critical }
`);
    const bulk = Array.from({ length: 4 }, () => send(gateway.url, '/bulk'));
    await eventually(() => answers.length === 4);
    expect(await send(gateway.url, '/bulk')).toMatchObject({ status: 503 });
    const paid = send(gateway.url, '/pay');
    await eventually(() => answers.length === 5);
    for (const answer of answers) answer();
    expect((await paid).status).toBe(200);
    expect((await Promise.all(bulk)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });
});

describe('idempotency keys', () => {
  const route = 'idempotency: { scope: "header:authorization" }';
  const keyed = (authorization: string, body = 'order 1') => ({
    method: 'POST',
    headers: { 'idempotency-key': 'k-1', authorization },
    body,
  });

  test('execute a request once and replay its response', async () => {
    const upstream = await serve({ status: 201, body: 'first' }, { status: 201, body: 'second' });
    const gateway = await start(simple([upstream], '', route));
    const first = await send(gateway.url, '/orders', keyed('Bearer a'));
    const again = await send(gateway.url, '/orders', keyed('Bearer a'));
    expect(first).toMatchObject({ status: 201, body: 'first' });
    expect(again).toMatchObject({ status: 201, body: 'first', headers: { 'idempotent-replayed': 'true' } });
    expect(upstream.seen).toMatchObject([{ body: 'order 1', headers: { 'idempotency-key': 'k-1' } }]);
  });

  test('belong to one caller, and to one request', async () => {
    const upstream = await serve({ body: 'of a' }, { body: 'of b' });
    const gateway = await start(simple([upstream], '', route));
    expect(await send(gateway.url, '/', keyed('Bearer a'))).toMatchObject({ body: 'of a' });
    expect(await send(gateway.url, '/', keyed('Bearer b'))).toMatchObject({ body: 'of b' });
    expect(await send(gateway.url, '/', keyed('Bearer a', 'order 2'))).toMatchObject({ status: 422 });
  });

  test('of a request in flight are not executed a second time', async () => {
    let answer: (() => void) | undefined;
    const upstream = await serve((_request, response) => {
      answer = () => response.end('done');
    });
    const gateway = await start(simple([upstream], '', route));
    const first = send(gateway.url, '/', keyed('Bearer a'));
    await eventually(() => answer);
    expect(await send(gateway.url, '/', keyed('Bearer a'))).toMatchObject({ status: 409 });
    answer!();
    expect(await first).toMatchObject({ status: 200, body: 'done' });
    expect(upstream.seen.length).toBe(1);
  });

  test('work for a client that expects 100-continue', async () => {
    const upstream = await serve(201);
    const gateway = await start(simple([upstream], '', route));
    const { headers, ...rest } = keyed('Bearer a');
    const expecting = { ...headers, expect: '100-continue', 'content-length': '7' };
    expect(await send(gateway.url, '/', { ...rest, headers: expecting })).toMatchObject({ status: 201 });
  });

  test('record the response of a request whose client has gone', async () => {
    let answer: (() => void) | undefined;
    const upstream = await serve((request, response) => {
      request.resume();
      answer = () => response.writeHead(201).end('made');
    });
    const gateway = await start(simple([upstream], '', route));
    const client = await RawClient.connect(gateway.address.port);
    client.write(
      'POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k-1\r\nAuthorization: Bearer a\r\nContent-Length: 7\r\n\r\norder 1',
    );
    await eventually(() => answer);
    client.end();
    await client.closed();
    expect((await gateway.state())[0]!.inFlight).toBe(1);
    answer!();
    const again = await eventually(async () => {
      const repeated = await send(gateway.url, '/', keyed('Bearer a'));
      return repeated.status !== 409 && repeated;
    });
    expect(again).toMatchObject({ status: 201, body: 'made', headers: { 'idempotent-replayed': 'true' } });
    expect(upstream.seen.length).toBe(1);
    expect((await gateway.state())[0]!.inFlight).toBe(0);
  });

  test('record a response whose body comes later than its head', async () => {
    const upstream = await serve((request, response) => {
      request.resume();
      response.writeHead(201);
      response.flushHeaders();
      setTimeout(() => response.end('made'), 50);
    });
    const gateway = await start(simple([upstream], '', route));
    expect(await send(gateway.url, '/', keyed('Bearer a'))).toMatchObject({ status: 201, body: 'made' });
    expect(await send(gateway.url, '/', keyed('Bearer a'))).toMatchObject({
      status: 201,
      body: 'made',
      headers: { 'idempotent-replayed': 'true' },
    });
  });

  test('in a store outlive the gateway', async () => {
    const file = path.join(mkdtempSync(path.join(tmpdir(), 'holdfast-gateway-')), 'keys.db');
    const upstream = await serve({ status: 201, body: 'first' }, { status: 201, body: 'second' });
    const yaml = simple([upstream], '', route, `stores: { ledger: "sqlite:${file}" }`);
    const before = await start(yaml);
    await send(before.url, '/', keyed('Bearer a'));
    await before.close();
    const after = await start(yaml);
    expect(await send(after.url, '/', keyed('Bearer a'))).toMatchObject({ status: 201, body: 'first' });
    expect(upstream.seen.length).toBe(1);
  });
});

describe('a response of the gateway itself', () => {
  /** Requests whose id the client can read, each with the body that it got. */
  async function logged(file: string, count: number) {
    const lines = await eventually(() => {
      const all = readFileSync(file, 'utf8').trim().split('\n').filter(Boolean);
      return all.length >= count && all;
    });
    return new Map(
      lines.map((line) => JSON.parse(line)).map(({ id, status, bytes }) => [id, { status, bytes }]),
    );
  }

  test('has the id of the request and its size in the log, as one of the upstream has', async () => {
    const file = path.join(mkdtempSync(path.join(tmpdir(), 'holdfast-gateway-')), 'access.log');
    const held: (() => void)[] = [];
    const upstream = await serve({ status: 201, body: 'first' }, (_request, response) => {
      held.push(() => response.end('done'));
    });
    const gateway = await start(`
accessLog: ${file}
upstreams:
  api:
    instances: ["${upstream.url}"]
routes:
  - { match: /keyed, upstream: api, idempotency: { scope: public } }
  - { match: /limited, upstream: api, rateLimiting: { requestsPerSecond: 0.001, burstSize: 1 } }
  - { match: /full, upstream: api, bulkhead: { maxConcurrentRequests: 1, maxQueuedRequests: 0 } }
`);
    const keyed = (body: string, key = 'k-1') =>
      send(gateway.url, '/keyed', { method: 'POST', headers: { 'idempotency-key': key }, body });
    const all = [
      await keyed('order 1'),
      await keyed('order 1'),
      await keyed('order 2'),
      await keyed('order 1', ' , '),
      await send(gateway.url, '/nowhere'),
      await send(gateway.url, '/nowhere', { method: 'HEAD' }),
    ];
    const running = send(gateway.url, '/full');
    await eventually(() => held.length === 1);
    all.push(await send(gateway.url, '/full'));
    const last = send(gateway.url, '/limited');
    await eventually(() => held.length === 2);
    all.push(await send(gateway.url, '/limited'));
    for (const answer of held) answer();
    all.push(await running, await last);
    expect(all.map(({ status }) => status)).toEqual([201, 201, 422, 400, 404, 404, 503, 429, 200, 200]);

    const ids = all.map(({ headers }) => headers['x-request-id']);
    expect(new Set(ids).size).toBe(all.length);
    const records = await logged(file, all.length);
    expect(ids.map((id) => records.get(id))).toEqual(
      all.map(({ status, body }) => ({ status, bytes: Buffer.byteLength(body) })),
    );
  });

  test('has the id of the request also instead of a response of the upstream', async () => {
    const upstream = await serve(500);
    const gateway = await start(simple([upstream], '', 'fallback: { static: { body: "later" } }'));
    const answered = await send(gateway.url);
    expect(answered).toMatchObject({ status: 200, body: 'later' });
    expect(answered.headers['x-request-id']).toEqual(expect.any(String));
  });
});
