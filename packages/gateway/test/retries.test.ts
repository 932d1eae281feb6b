import { describe, expect, test } from 'vitest';
import { freePort, serve, serveRaw } from '../../http/test/servers.ts';
import { ask, eventually, send, simple, start } from './gateways.ts';

const dead = async () => ({ url: `http://127.0.0.1:${await freePort()}` });
const quick = 'retry: { attempts: 3, backoff: { base: 1ms, cap: 5ms } }';
const turns = 'loadBalancing: roundRobin\noutlierEjection: false';

async function storyOf(gateway: Parameters<typeof ask>[0], id: string | string[] | undefined) {
  const { body } = await ask(gateway, `/stories/${String(id)}`);
  return body as {
    attempts: number;
    stop?: string;
    says: string;
    log: { outcome: string; instance: string }[];
  };
}

describe('a retry', () => {
  test('prefers another instance, and the story says why', async () => {
    const failing = await serve(503);
    const working = await serve({ body: 'well' });
    const gateway = await start(simple([failing, working], `${quick}\n${turns}`));

    const answer = await send(gateway.url);

    expect(answer).toMatchObject({ status: 200, body: 'well' });
    expect([failing.seen.length, working.seen.length]).toEqual([1, 1]);
    const story = await storyOf(gateway, answer.headers['x-request-id']);
    expect(story).toMatchObject({ attempts: 2, log: [{ outcome: '503', instance: failing.url }] });
    expect(story.says).toContain('attempt 2 succeeded');
  });

  test('follows an instance that is not there, also for a POST: nothing was sent', async () => {
    const working = await serve({ body: 'made' });
    const gateway = await start(simple([await dead(), working], `${quick}\n${turns}`));
    expect(await send(gateway.url, '/', { method: 'POST', body: 'one' })).toMatchObject({ status: 200 });
    expect(working.seen).toMatchObject([{ method: 'POST', body: 'one' }]);
  });

  test('does not follow a POST that may have been processed', async () => {
    const resets = await serveRaw((socket) => {
      socket.once('data', () => socket.destroy());
    });
    const other = await serve(200);
    const gateway = await start(simple([resets, other], `${quick}\n${turns}`));
    const answer = await send(gateway.url, '/', { method: 'POST', body: 'one' });
    expect(answer).toMatchObject({ status: 502, headers: { holdfast: 'retry=unknown' } });
    expect(other.seen).toEqual([]);
    expect(await storyOf(gateway, answer.headers['x-request-id'])).toMatchObject({
      attempts: 1,
      stop: 'not_idempotent',
    });
  });

  test('follows a POST with an Idempotency-Key, with the same body and the same key', async () => {
    const failing = await serve(503);
    const working = await serve(201);
    const gateway = await start(simple([failing, working], `${quick}\n${turns}`));
    const headers = { 'idempotency-key': 'k-1' };
    expect(await send(gateway.url, '/', { method: 'POST', body: 'one', headers })).toMatchObject({
      status: 201,
    });
    expect([...failing.seen, ...working.seen]).toMatchObject([
      { body: 'one', headers: { 'idempotency-key': 'k-1' } },
      { body: 'one', headers: { 'idempotency-key': 'k-1' } },
    ]);
  });

  test('does not follow a body that was too long to be kept, and the story says so', async () => {
    const failing = await serve(503);
    const working = await serve(200);
    const gateway = await start(simple([failing, working], `${quick}\n${turns}`, '', 'keptBody: 1KiB'));
    const answer = await send(gateway.url, '/', { method: 'PUT', body: 'x'.repeat(2000) });
    expect(answer.status).toBe(503);
    expect(working.seen).toEqual([]);
    expect(await storyOf(gateway, answer.headers['x-request-id'])).toMatchObject({ stop: 'not_replayable' });
  });

  test('follows a long body if its instance was not there: no byte of it was read', async () => {
    const working = await serve(200);
    const gateway = await start(simple([await dead(), working], `${quick}\n${turns}`, '', 'keptBody: 1KiB'));
    const body = 'x'.repeat(100_000);
    expect(await send(gateway.url, '/', { method: 'PUT', body })).toMatchObject({ status: 200 });
    expect(working.seen[0]!.body).toBe(body);
  });

  test('gives the last response of the upstream when there is no other attempt', async () => {
    const failing = await serve({ status: 503, headers: { 'x-why': 'tired' }, body: 'not now' });
    const gateway = await start(simple([failing], quick));
    expect(await send(gateway.url)).toMatchObject({
      status: 503,
      headers: { 'x-why': 'tired' },
      body: 'not now',
    });
    expect(failing.seen.length).toBe(3);
  });

  test('does not come earlier than the upstream asks for', async () => {
    const failing = await serve({ status: 503, headers: { 'retry-after': '3600' } });
    const gateway = await start(simple([failing], quick));
    expect(await send(gateway.url)).toMatchObject({ status: 503, headers: { 'retry-after': '3600' } });
    expect(failing.seen.length).toBe(1);
  });

  test('does not follow when the caller retries itself', async () => {
    const failing = await serve(503);
    const gateway = await start(simple([failing], quick));
    const answer = await send(gateway.url, '/', { headers: { holdfast: 'owner=?1' } });
    expect(answer.status).toBe(503);
    expect(failing.seen.length).toBe(1);
    expect(await storyOf(gateway, answer.headers['x-request-id'])).toMatchObject({ stop: 'not_owner' });
  });

  test('is paid by a budget: an outage is not multiplied', async () => {
    const failing = await serve(503);
    const gateway = await start(simple([failing], quick));
    for (let count = 0; count < 100; count++) await send(gateway.url);
    expect(failing.seen.length).toBeLessThan(120);
  });

  test('tells the upstream which attempt it is, and how long the caller waits', async () => {
    const upstream = await serve(503, 200);
    const gateway = await start(simple([upstream], quick));
    await send(gateway.url, '/', { headers: { holdfast: 'patience=5000' } });
    expect(upstream.seen.map(({ headers }) => headers.holdfast)).toEqual([
      expect.stringMatching(/^patience=[1-5]\d{3}, attempt=1, owner=\?1$/),
      expect.stringMatching(/^patience=[1-5]\d{3}, attempt=2, owner=\?1$/),
    ]);
  });

  test('by the name of a policy is what the policy says', async () => {
    const failing = await serve(503, 503, 200);
    const gateway = await start(
      simple(
        [failing],
        'retry: eager',
        '',
        'policies: { eager: { attempts: 3, backoff: { base: 1ms, cap: 1ms } } }',
      ),
    );
    expect(await send(gateway.url)).toMatchObject({ status: 200 });
  });
});

describe('time', () => {
  test('without a response is a 504', async () => {
    const silent = await serve(() => {});
    const gateway = await start(simple([silent], 'timeouts: { request: 100ms }'));
    expect(await send(gateway.url)).toMatchObject({ status: 504, headers: { holdfast: 'retry=unknown' } });
  });

  test('of one attempt can be over before that of the request', async () => {
    const slow = await serve(() => {}, { body: 'quick' });
    const gateway = await start(simple([slow], `${quick}\ntimeouts: { request: 10s, attempt: 50ms }`));
    expect(await send(gateway.url)).toMatchObject({ status: 200, body: 'quick' });
  });

  test('is shortened by the caller, and never prolonged', async () => {
    const silent = await serve(() => {});
    const gateway = await start(simple([silent], 'timeouts: { request: 300ms }'));
    expect(await send(gateway.url, '/', { headers: { holdfast: 'patience=50' } })).toMatchObject({
      status: 504,
    });
    expect(await send(gateway.url, '/', { headers: { 'grpc-timeout': '50m' } })).toMatchObject({
      status: 504,
    });
    expect(await send(gateway.url, '/', { headers: { 'x-request-timeout-ms': '999999' } })).toMatchObject({
      status: 504,
    });
    expect(await send(gateway.url, '/', { headers: { holdfast: 'patience=0' } })).toMatchObject({
      status: 504,
      headers: { holdfast: 'retry=safe' },
    });
    expect(silent.seen.length).toBe(3);
  });

  test('between two parts of a body is limited', async () => {
    const stuck = await serve((_request, response) => {
      response.write('begun');
    });
    const gateway = await start(simple([stuck], 'timeouts: { idle: 500ms }'));
    await expect(send(gateway.url)).rejects.toThrow(/aborted|ECONNRESET/);
  });
});

describe('a breaker', () => {
  test('opens after failures in a row, and refuses without calling', async () => {
    const failing = await serve(500);
    const gateway = await start(simple([failing], 'circuitBreaker: { failureThreshold: 3, timeout: 1h }'));
    for (let count = 0; count < 3; count++) expect(await send(gateway.url)).toMatchObject({ status: 500 });
    const refused = await send(gateway.url);
    expect(refused).toMatchObject({ status: 503, headers: { holdfast: 'retry=safe' } });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(60);
    expect(failing.seen.length).toBe(3);
  });

  test('of one instance leaves the others alone', async () => {
    const failing = await serve(503);
    const working = await serve(200);
    const upstream = `circuitBreaker: { failureThreshold: 2, timeout: 1h }\n${quick}\n${turns}`;
    const gateway = await start(simple([failing, working], upstream));
    for (let count = 0; count < 10; count++) expect(await send(gateway.url)).toMatchObject({ status: 200 });
    expect(failing.seen.length).toBe(2);
  });

  test('closes again after as many probes as the file says', async () => {
    const upstream = await serve(500, 500, 200);
    const gateway = await start(
      simple([upstream], 'circuitBreaker: { failureThreshold: 2, timeout: 20ms, halfOpenRequests: 2 }'),
    );
    for (let count = 0; count < 2; count++) await send(gateway.url);
    expect((await gateway.state())[0]!.upstreams[0]!.instances[0]!.breaker).not.toBe('closed');
    await eventually(async () => (await send(gateway.url)).status === 200);
    expect((await gateway.state())[0]!.upstreams[0]!.instances[0]!.breaker).toBe('half-open');
    await send(gateway.url);
    expect((await gateway.state())[0]!.upstreams[0]!.instances[0]!.breaker).toBe('closed');
  });
});

describe('a hedge', () => {
  test('is sent to another instance when the first is slow, and the first answer wins', async () => {
    let aborted = 0;
    const slow = await serve(200, 200, (request) => {
      request.socket.on('close', () => aborted++);
    });
    const fast = await serve({ body: 'fast' });
    const gateway = await start(
      simple([slow, fast], `hedge: { after: 50ms, extraLoad: 1 }\nloadBalancing: roundRobin`),
    );
    // Successes pay for hedges.
    for (let count = 0; count < 4; count++) await send(gateway.url);
    expect(await send(gateway.url)).toMatchObject({ status: 200, body: 'fast' });
    expect([slow.seen.length, fast.seen.length]).toEqual([3, 3]);
    await eventually(() => aborted === 1);
  });
});

describe('a fallback', () => {
  test('is another route', async () => {
    const broken = await serve(503);
    const spare = await serve({ body: 'spare' });
    const gateway = await start(`
admin: { token: a-token }
upstreams:
  main: { instances: ["${broken.url}"] }
  spare: { instances: ["${spare.url}"] }
routes:
  - { name: main, upstream: main, fallback: { route: spare } }
  - { name: spare, match: /spare, upstream: spare }
`);
    expect(await send(gateway.url, '/x', { method: 'POST', body: 'kept' })).toMatchObject({ body: 'spare' });
    expect(spare.seen).toMatchObject([{ url: '/x', method: 'POST', body: 'kept' }]);
    const [worker] = await gateway.state();
    expect(worker!.routes.map(({ fallbacks }) => fallbacks)).toEqual([1, 0]);
    expect(worker!.inFlight).toBe(0);
    expect(worker!.routes.map(({ inFlight }) => inFlight)).toEqual([0, 0]);
  });

  test('is a response of the file, marked as such', async () => {
    const gateway = await start(
      simple(
        [await dead()],
        '',
        'fallback: { static: { body: "later", headers: { content-type: text/plain } } }',
      ),
    );
    expect(await send(gateway.url)).toMatchObject({
      status: 200,
      body: 'later',
      headers: { 'x-degraded': 'fallback', 'content-type': 'text/plain' },
    });
  });

  test('is the last good response', async () => {
    const upstream = await serve({ body: 'good' }, 500);
    const gateway = await start(simple([upstream], '', 'fallback: { stale: 1m }'));
    expect(await send(gateway.url)).toMatchObject({ body: 'good' });
    expect(await send(gateway.url)).toMatchObject({
      status: 200,
      body: 'good',
      headers: { 'x-degraded': 'stale' },
    });
  });
});
