import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import tls from 'node:tls';
import { policy } from 'holdfast';
import { virtualClock } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import { degrade, gracefulShutdown, health, shed } from '../src/index.ts';
import { frameworks, listen, plain, reply } from './frameworks.ts';

const tokened = { token: 'secret' };
const authorized = { headers: { authorization: 'Bearer secret' } };

describe.each(frameworks)('health on $name', ({ serve }) => {
  test('is alive and ready, until a critical dependency fails or it drains', async () => {
    let works = true;
    const part = health({
      ...tokened,
      dependencies: {
        db: { check: () => works },
        mail: {
          check: () => {
            throw new Error('no route');
          },
          critical: false,
        },
      },
    });
    await using server = await serve([part], () => reply(404));
    const look = async (path: string) => {
      const answer = await fetch(server.origin + path, authorized);
      return [
        answer.status,
        answer.headers.get('content-type'),
        ((await answer.json()) as { status: string }).status,
      ];
    };
    const type = expect.stringContaining('application/health+json');
    expect(await look('/livez')).toEqual([200, type, 'pass']);
    expect(await look('/readyz')).toEqual([200, type, 'warn']);
    part.drain();
    expect(await look('/readyz')).toEqual([503, type, 'fail']);
    expect(await look('/livez')).toEqual([200, type, 'pass']);
    works = false;
    expect((await fetch(`${server.origin}/other`)).status).toBe(404);
  });
});

describe('readiness', () => {
  test('is not there before the start', async () => {
    const part = health({ started: false });
    await using server = await plain.serve([part], () => reply(404));
    expect((await fetch(`${server.origin}/readyz`)).status).toBe(503);
    part.started();
    expect((await fetch(`${server.origin}/readyz`)).status).toBe(200);
  });

  test('knows the breakers of policies, and names what is wrong', async () => {
    const payment = policy({ name: 'health-payment', attempts: 1, breaker: { consecutive: 1, minimum: 1 } });
    const part = health({ ...tokened, dependencies: { payment: { policy: 'health-payment' } } });
    const fail = () =>
      payment.try(() => Promise.reject(Object.assign(new Error('down'), { code: 'ECONNRESET' })));
    for (let time = 0; time < 25; time++) await fail();
    await using server = await plain.serve([part], () => reply(404));
    const answer = await fetch(`${server.origin}/health`, authorized);
    expect([answer.status, await answer.json()]).toMatchObject([
      503,
      {
        status: 'fail',
        checks: { payment: { status: 'fail', error: 'its breaker is open', breakers: { '': 'open' } } },
      },
    ]);
  });

  test('says that no policy has the name of a dependency, and stays ready', async () => {
    const check = () => false;
    const dependencies = {
      pay: { policy: 'health-no-such-policy' },
      db: { policy: 'health-no-such-policy', check, critical: false },
    };
    const part = health({ ...tokened, dependencies });
    await using server = await plain.serve([part], () => reply(404));
    const answer = await fetch(`${server.origin}/readyz`, authorized);
    expect([answer.status, await answer.json()]).toMatchObject([
      200,
      {
        status: 'warn',
        checks: {
          pay: { status: 'warn', error: 'no policy is named health-no-such-policy' },
          db: { status: 'warn', error: 'it said no' },
        },
      },
    ]);
  });

  test('does not wait for a dependency that hangs', async () => {
    let aborted = false;
    const check = (signal: AbortSignal) =>
      new Promise(() =>
        signal.addEventListener('abort', () => {
          aborted = true;
        }),
      );
    const part = health({ ...tokened, timeout: '20ms', dependencies: { db: { check } } });
    expect(await part.read()).toMatchObject({
      status: 'fail',
      checks: { db: { error: 'it took longer than 20 ms' } },
    });
    expect(aborted).toBe(true);
  });

  test('a path that is none is refused', () => {
    expect(() => health({ ready: 'readyz' })).toThrow(
      'health: expected a path such as "/readyz", got "readyz"',
    );
  });
});

describe.each(frameworks)('degrading on $name', ({ serve }) => {
  test('a failure gets the last good answer, marked, and nobody else’s', async () => {
    let works = true;
    const part = degrade();
    await using server = await serve([part], ({ url }) =>
      works ? reply(200, `fresh ${url}`, { etag: '"1"', 'x-secret': '1' }) : reply(500, 'broken'),
    );
    const get = (path: string, headers: Record<string, string> = {}) =>
      fetch(server.origin + path, { headers });
    expect(await (await get('/a')).text()).toBe('fresh /a');
    await (await get('/private', { authorization: 'Bearer a' })).text();
    works = false;
    const stale = await get('/a');
    expect([
      stale.status,
      await stale.text(),
      stale.headers.get('x-degraded'),
      stale.headers.get('age'),
    ]).toEqual([200, 'fresh /a', 'stale', '0']);
    expect([stale.headers.get('etag'), stale.headers.get('x-secret')]).toEqual(['"1"', null]);
    expect((await get('/b')).status).toBe(500);
    expect((await get('/private', { authorization: 'Bearer b' })).status).toBe(500);
    expect((await get('/private')).status).toBe(500);
    expect((await fetch(`${server.origin}/a`, { method: 'POST', body: 'x' })).status).toBe(500);
    expect(part.counts).toEqual({ stale: 1, fallback: 0 });
  });

  test('an answer that depends on what the request says is not for those who say otherwise', async () => {
    let works = true;
    await using server = await serve([degrade()], () =>
      works ? reply(200, 'bonjour', { vary: 'Accept-Language, X-Other' }) : reply(500, 'broken'),
    );
    const get = async (language: string) =>
      (await fetch(server.origin, { headers: { 'accept-language': language } })).text();
    await get('fr');
    works = false;
    expect(await get('en')).toBe('broken');
    expect(await get('fr')).toBe('bonjour');
  });

  test('and what is shed, a fallback', async () => {
    const fallback = () => reply(200, 'something');
    const full = shed(
      { initial: 1, floor: 1, ceiling: 1, queueMax: 0, reserve: 0 },
      { readings: { utilization: () => 0, heap: () => 0 } },
    );
    const begun = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    await using server = await serve([degrade({ fallback }), full], async () => {
      begun.resolve();
      await release.promise;
      return reply(200, 'all');
    });
    const first = fetch(`${server.origin}/a`);
    await begun.promise;
    const second = await fetch(`${server.origin}/b`);
    expect([second.status, await second.text(), second.headers.get('x-degraded')]).toEqual([
      200,
      'something',
      'fallback',
    ]);
    release.resolve();
    expect(await (await first).text()).toBe('all');
  });
});

describe.each(frameworks)('what fails on $name while there is a stale answer', ({ serve }) => {
  test('is left alone for a while, and then tried by one request only', async () => {
    const clock = virtualClock();
    let works = true;
    let calls = 0;
    let held: Promise<void> | undefined;
    const part = degrade({ rest: '500ms' }, { clock });
    await using server = await serve([part], async () => {
      calls++;
      await held;
      return works ? reply(200, 'fresh') : reply(503, 'broken');
    });
    const get = async () => {
      const answer = await fetch(server.origin);
      return [answer.status, answer.headers.get('x-degraded'), await answer.text()];
    };
    const stale = [200, 'stale', 'fresh'];
    await get();
    works = false;
    expect(await get()).toEqual(stale);
    expect(await get()).toEqual(stale);
    expect(calls).toBe(2);

    await clock.advance(500);
    const tried = Promise.withResolvers<void>();
    held = tried.promise;
    const one = get();
    await expect.poll(() => calls).toBe(3);
    expect(await get()).toEqual(stale);
    works = true;
    tried.resolve();
    expect(await one).toEqual([200, null, 'fresh']);
    expect(await get()).toEqual([200, null, 'fresh']);
    expect(calls).toBe(4);
  });
});

describe('what is kept for bad times', () => {
  test('is bounded, and obeys those who say not to keep it', async () => {
    let works = true;
    const part = degrade({ bytesMax: 2_000 });
    await using server = await plain.serve([part], ({ url }) =>
      works
        ? reply(200, 'x'.repeat(500), url === '/secret' ? { 'cache-control': 'private' } : {})
        : reply(503),
    );
    for (const path of ['/1', '/2', '/3', '/4', '/secret']) await (await fetch(server.origin + path)).text();
    expect(part.bytes).toBeLessThanOrEqual(2_000);
    works = false;
    const statuses = [];
    for (const path of ['/1', '/4', '/secret']) statuses.push((await fetch(server.origin + path)).status);
    expect(statuses).toEqual([503, 200, 503]);
  });
});

describe.each(frameworks)('a graceful shutdown on $name', ({ serve }) => {
  async function setup(patience: '1m' | '1s' | '20ms') {
    const part = health();
    const begun = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const running = await serve([part], async () => {
      begun.resolve();
      await release.promise;
      return reply(200, 'done');
    });
    const steps: string[] = [];
    const ending = gracefulShutdown(running.server, {
      health: part,
      drainDelay: '60ms',
      patience,
      signals: [],
      before: () => steps.push('before'),
      after: () => steps.push('after'),
    });
    return { part, begun, release, running, steps, ending };
  }

  test('lets what runs end, says that it is not ready, and closes connections', async () => {
    const { part, begun, release, running, steps, ending } = await setup('1s');
    const first = fetch(running.origin);
    await begun.promise;
    const ended = ending.shutdown();
    expect(ending.shutdown()).toBe(ended);
    expect([part.isDraining, ending.signal.aborted]).toEqual([true, true]);
    const ready = await fetch(`${running.origin}/readyz`);
    // This connection is new, and is kept until the server stops listening.
    expect([ready.status, ready.headers.get('connection')]).toEqual([503, 'keep-alive']);
    release.resolve();
    const response = await first;
    expect(response.headers.get('connection')).toBe('close');
    expect(await response.text()).toBe('done');
    expect(await ended).toBe(0);
    expect(steps).toEqual(['before', 'after']);
    await expect(fetch(running.origin)).rejects.toThrow();
  });

  test('cuts off what does not end', async () => {
    const { begun, release, running, ending } = await setup('20ms');
    const first = fetch(running.origin);
    await begun.promise;
    const failed = expect(first).rejects.toThrow();
    expect(await ending.shutdown()).toBe(1);
    await failed;
    release.resolve();
  });

  test('does not wait for the connection of an answer that it has waited for', async () => {
    const { begun, release, running, ending } = await setup('1m');
    running.server.keepAliveTimeout = 60_000;
    const socket = net.connect(running.port, '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    await begun.promise;
    const ended = ending.shutdown();
    await expect.poll(() => running.server.listening).toBe(false);
    release.resolve();
    expect(await text(socket)).toContain('done');
    expect(await ended).toBe(0);
  });

  test('cuts off what has become another protocol', async () => {
    const { running, ending } = await setup('20ms');
    running.server.on('upgrade', (_request, socket) => {
      socket.on('error', () => {});
      socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n');
    });
    const socket = net.connect(running.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nhost: a\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n');
    await once(socket, 'data');
    const left = once(socket, 'close');
    expect(await ending.shutdown()).toBe(0);
    await left;
  });
});

test.each(['http', 'https'])(
  'does not wait for a %s connection on which nothing was asked',
  async (scheme) => {
    // A key that both know, instead of a certificate.
    const psk = Buffer.from('secret');
    const isSecure = scheme === 'https';
    const server = isSecure ? createSecureServer({ ciphers: 'PSK', pskCallback: () => psk }) : createServer();
    await using running = await listen(server);
    const ending = gracefulShutdown(server, { drainDelay: '1ms', patience: '1h', signals: [] });
    const { port } = running;
    const socket = isSecure
      ? tls.connect({
          port,
          ciphers: 'PSK',
          pskCallback: () => ({ psk, identity: 'client' }),
          checkServerIdentity: () => undefined,
        })
      : net.connect(port, '127.0.0.1');
    socket.on('error', () => {});
    await once(server, isSecure ? 'secureConnection' : 'connection');
    const left = once(socket, 'close');
    expect(await ending.shutdown()).toBe(0);
    await left;
  },
);
