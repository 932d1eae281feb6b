import { createServer, request as httpRequest } from 'node:http';
import net from 'node:net';
import type { Claim } from '@holdfast/contracts';
import { memoryEngine } from '@holdfast/contracts/memory';
import { describe, expect, test } from 'vitest';
import { addressKey } from '../src/address.ts';
import { readKey } from '../src/idempotency/idempotency-key.ts';
import {
  bulkhead,
  deadline,
  harden,
  hardenedServer,
  health,
  type IdempotencyOptions,
  idempotency,
  type Part,
  peers,
  type RequestContext,
  rateLimit,
  retryAfterHeader,
  shed,
} from '../src/index.ts';
import { guard } from '../src/node.ts';
import { frameworks, listen, plain, reply } from './frameworks.ts';

function keyed(options: Partial<IdempotencyOptions> = {}): Part {
  return idempotency({ ledger: memoryEngine().ledger, scope: () => 'tenant', ...options });
}

const post = (origin: string, headers: Record<string, string>, body = 'one') =>
  fetch(origin, { method: 'POST', body, headers });

describe('1. replay across tenants', () => {
  const scope: IdempotencyOptions['scope'] = (exchange) => exchange.header('x-tenant');

  test('the same key of two tenants is two keys', async () => {
    let executed = 0;
    await using server = await plain.serve([keyed({ scope })], () => reply(200, `secret ${++executed}`));
    const key = { 'idempotency-key': 'k' };
    expect(await (await post(server.origin, { ...key, 'x-tenant': 'a' })).text()).toBe('secret 1');
    expect(await (await post(server.origin, { ...key, 'x-tenant': 'b' })).text()).toBe('secret 2');
  });

  test('without a tenant nothing is executed, and no common one is made up', async () => {
    await using server = await plain.serve([keyed({ scope })], () => reply(200));
    expect((await post(server.origin, { 'idempotency-key': 'k' })).status).toBe(403);
  });

  test('an option that says whose keys they are is demanded', () => {
    expect(() => idempotency({ ledger: memoryEngine().ledger } as IdempotencyOptions)).toThrow(
      'idempotency.scope: expected a function that gives the owner of the key, or "public", got undefined',
    );
  });
});

describe('2. length and characters of a key', () => {
  test.each([
    ['k'.repeat(255), { key: 'k'.repeat(255) }],
    ['k'.repeat(256), 'invalid'],
    [`"${'k'.repeat(255)}"`, { key: 'k'.repeat(255) }],
    ['with space', 'invalid'],
    ['"with space"', 'invalid'],
    ['"unclosed', 'invalid'],
    ['unopened"', 'invalid'],
    ['a, b', 'invalid'],
    ['ümlaut', 'invalid'],
    ['a\tb', 'invalid'],
    ['"a\\b"', 'invalid'],
    [`"${'\\"'.repeat(5000)}"`, 'invalid'],
  ])('%j', (line, read) => {
    expect(readKey([line])).toEqual(read);
  });

  test('two lines are not one key', async () => {
    await using server = await plain.serve([keyed()], () => reply(200));
    const status = await new Promise<number>((resolve) => {
      const request = httpRequest(server.origin, { method: 'POST' }, (response) => {
        response.resume();
        resolve(response.statusCode!);
      });
      request.setHeader('idempotency-key', ['a', 'b']);
      request.end('one');
    });
    expect(status).toBe(400);
  });
});

test('3. what is replayed holds no header that was meant for the first caller', async () => {
  const secrets = {
    'set-cookie': 'session=secret',
    'www-authenticate': 'Bearer secret',
    'server-timing': 'db;dur=5',
    traceparent: '00-secret',
    'x-internal': 'secret',
  };
  const stored: unknown[] = [];
  const { ledger } = memoryEngine();
  const spied = {
    ...ledger,
    complete: (all: Parameters<typeof ledger.complete>[0]) => {
      stored.push(...all);
      return ledger.complete(all);
    },
  };
  await using server = await plain.serve([keyed({ ledger: spied, replay: ['x-public'] })], () =>
    reply(200, 'body', { ...secrets, 'x-public': 'yes', etag: '"1"' }),
  );
  const headers = { 'idempotency-key': 'k', authorization: 'Bearer request-secret' };
  await post(server.origin, headers, 'request-secret');
  const replayed = await post(server.origin, headers, 'request-secret');
  for (const name of Object.keys(secrets)) expect(replayed.headers.get(name)).toBe(null);
  expect([replayed.headers.get('x-public'), replayed.headers.get('etag')]).toEqual(['yes', '"1"']);
  expect(JSON.stringify(stored)).not.toContain('secret');
  expect(() => keyed({ replay: ['Set-Cookie'] })).toThrow('idempotency.replay');
});

test('4. another fingerprint learns nothing: not whether the first runs, nor what it answered', async () => {
  const release = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  await using server = await plain.serve([keyed()], async () => {
    begun.resolve();
    await release.promise;
    return reply(200, 'secret');
  });
  const first = post(server.origin, { 'idempotency-key': 'k' });
  await begun.promise;
  const whileRunning = await post(server.origin, { 'idempotency-key': 'k' }, 'other');
  release.resolve();
  await (await first).text();
  const whenDone = await post(server.origin, { 'idempotency-key': 'k' }, 'other');
  expect([whileRunning.status, whenDone.status]).toEqual([422, 422]);
  expect(await whileRunning.text()).toBe(await whenDone.text());
});

describe('5. huge bodies and streams', () => {
  test('a longer request is refused before it is executed', async () => {
    let executed = 0;
    await using server = await plain.serve([keyed({ bodyMax: 1000 })], () => reply(200, `${++executed}`));
    expect((await post(server.origin, { 'idempotency-key': 'k' }, 'x'.repeat(1001))).status).toBe(413);
    expect(executed).toBe(0);
  });

  test('a stream is a tombstone: it is passed on as it comes, and never executed again', async () => {
    let executed = 0;
    const server = createServer(
      guard([keyed()], async (_request, response) => {
        executed++;
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('data: 1\n\n');
        await arrived.promise;
        response.end('data: 2\n\n');
      }),
    );
    const arrived = Promise.withResolvers<void>();
    await using running = await listen(server);
    const first = await post(running.origin, { 'idempotency-key': 'k' });
    const reader = first.body!.getReader();
    expect(Buffer.from((await reader.read()).value!).toString()).toBe('data: 1\n\n');
    arrived.resolve();
    expect(Buffer.from((await reader.read()).value!).toString()).toBe('data: 2\n\n');
    const again = await post(running.origin, { 'idempotency-key': 'k' });
    expect([again.status, await again.json()]).toMatchObject([
      409,
      { type: 'urn:holdfast:problem:response-not-stored' },
    ]);
    expect(executed).toBe(1);
  });
});

describe('6. an owner that died, and one that did not', () => {
  const lease = '100ms';

  /** Handlers wait for their turn, so that a lease can be lost under them. */
  async function zombies(options: Partial<IdempotencyOptions>) {
    const turns: { context: RequestContext; finish: (answer: ReturnType<typeof reply>) => void }[] = [];
    const { ledger } = memoryEngine();
    // Heartbeats go astray, as those of a process that hangs do.
    const deaf = { ...ledger, extend: async () => [true] };
    const part = keyed({ ledger: deaf, lease, ...options });
    const server = await plain.serve([part], ({ context }) => {
      const { promise, resolve } = Promise.withResolvers<ReturnType<typeof reply>>();
      turns.push({ context, finish: resolve });
      return promise;
    });
    return { server, turns, send: () => post(server.origin, { 'idempotency-key': 'k' }) };
  }

  test('its repetition is told that the outcome is unknown, and not to ask again', async () => {
    const { server, turns, send } = await zombies({});
    await using _ = server;
    const first = send();
    await expect.poll(() => turns.length).toBe(1);
    await expect.poll(async () => (await send()).status === 409 && turns.length).toBe(1);
    await expect
      .poll(async () => {
        const answer = await send();
        return [((await answer.json()) as { type: string }).type, answer.headers.get('holdfast')];
      })
      .toEqual(['urn:holdfast:problem:outcome-unknown', 'retry=never']);
    turns[0]!.finish(reply(200, 'mine'));
    expect(await (await first).text()).toBe('mine');
  });

  test('where the route says so it is executed again, and the completion of the first is refused', async () => {
    const { server, turns, send } = await zombies({ whenLost: 'reexecute' });
    await using _ = server;
    const first = send();
    await expect.poll(() => turns.length).toBe(1);
    let second: Promise<Response> | undefined;
    await expect
      .poll(async () => {
        if (turns.length === 1) second = send();
        await Promise.race([second, new Promise((resolve) => setTimeout(resolve, 30))]);
        return turns.length;
      })
      .toBe(2);
    expect(turns[1]!.context.idempotent!.attempt).toBe(2);
    turns[0]!.finish(reply(200, 'of the zombie'));
    const zombie = await first;
    expect([zombie.status, zombie.headers.get('retry-after')]).toEqual([409, '1']);
    turns[1]!.finish(reply(200, 'of the holder'));
    expect(await (await second!).text()).toBe('of the holder');
    const replayed = await send();
    expect(await replayed.text()).toBe('of the holder');
  });

  test('a long handler keeps its lease', async () => {
    // So long that a machine with other work does not miss a heartbeat.
    const part = keyed({ lease: '500ms' });
    const finish = Promise.withResolvers<void>();
    await using server = await plain.serve([part], async () => {
      await finish.promise;
      return reply(200, 'done');
    });
    const first = post(server.origin, { 'idempotency-key': 'k' });
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const second = await post(server.origin, { 'idempotency-key': 'k' });
    finish.resolve();
    const answer = await first;
    expect(await second.json()).toMatchObject({ type: 'urn:holdfast:problem:in-progress' });
    expect(await answer.text()).toBe('done');
  });
});

describe('7. a store that is away', () => {
  const hung = () => new Promise<never>(() => {});
  const dead = () => Promise.reject(new Error('ECONNREFUSED'));

  test.each([
    ['hangs', hung],
    ['is dead', dead],
  ])('idempotency is refused when it %s, and not executed', async (_, begin) => {
    let executed = 0;
    const ledger = { ...memoryEngine().ledger, begin };
    await using server = await plain.serve([keyed({ ledger })], () => reply(200, `${++executed}`));
    for (let time = 0; time < 3; time++) {
      const answer = await post(server.origin, { 'idempotency-key': `k${time}` });
      expect([answer.status, answer.headers.get('retry-after'), answer.headers.get('holdfast')]).toEqual([
        503,
        '1',
        'retry=safe',
      ]);
    }
    expect(executed).toBe(0);
  });

  test.each([
    ['share', [200, 429]],
    ['open', [200, 200]],
    ['closed', [429, 429]],
  ] as const)('a limit goes on: %s', async (whenUnavailable, statuses) => {
    const rateLimits = { take: hung, forget: async () => {} };
    const limit = rateLimit({ rateLimits, limits: { rate: '4/m' }, nodes: 4, whenUnavailable });
    await using server = await plain.serve([limit], () => reply(200));
    const answers = [await fetch(server.origin), await fetch(server.origin)];
    expect(answers.map(({ status }) => status)).toEqual(statuses);
    expect(limit.missed).toBe(2);
  });
});

test('8. a flood of keys fills its own scope only', async () => {
  const part = keyed({ scope: (exchange) => exchange.header('x-tenant'), liveMax: 3 });
  await using server = await plain.serve([part], () => reply(200));
  const statuses = [];
  for (let key = 0; key < 5; key++) {
    statuses.push(
      (await post(server.origin, { 'idempotency-key': `k${key}`, 'x-tenant': 'flooder' })).status,
    );
  }
  expect(statuses).toEqual([200, 200, 200, 429, 429]);
  expect((await post(server.origin, { 'idempotency-key': 'k', 'x-tenant': 'other' })).status).toBe(200);
});

test('8. keys that all callers share have no limit for one caller, unless it is set', async () => {
  const claims: Claim[] = [];
  const { ledger } = memoryEngine();
  const begin: typeof ledger.begin = (all) => {
    claims.push(...all);
    return ledger.begin(all);
  };
  const answer = async (options: Partial<IdempotencyOptions>, key: string) => {
    const part = idempotency({ ledger: { ...ledger, begin }, scope: 'public', ...options });
    await using server = await plain.serve([part], () => reply(200));
    return await post(server.origin, { 'idempotency-key': key });
  };
  await answer({}, 'a');
  await answer({ scope: () => 'tenant' }, 'b');
  expect(claims.map(({ liveMax }) => liveMax)).toEqual([1_000_000, 10_000]);

  const refused = [
    await answer({ liveMax: 1 }, 'c'),
    await answer({ liveMax: 1, scope: () => 'tenant' }, 'd'),
  ];
  expect(refused.map(({ status }) => status)).toEqual([429, 429]);
  expect(await Promise.all(refused.map(async (each) => (await each.json()).title))).toEqual([
    'There are too many live keys.',
    'There are too many live keys of this caller.',
  ]);
});

describe('11. X-Forwarded-For', () => {
  const proxies = peers('127.0.0.0/8', '10.0.0.0/8', '2001:db8::/32');
  const statusesOf = async (options: Parameters<typeof rateLimit>[0], chains: string[]) => {
    await using server = await plain.serve([rateLimit({ limits: { rate: '1/m' }, ...options })], () =>
      reply(200),
    );
    const statuses = [];
    for (const chain of chains) {
      statuses.push((await fetch(server.origin, { headers: { 'x-forwarded-for': chain } })).status);
    }
    return statuses;
  };

  test('is not believed unless the peer is one of ours', async () => {
    expect(await statusesOf({}, ['1.1.1.1', '2.2.2.2'])).toEqual([200, 429]);
  });

  test.each([
    ['clients behind our proxy are apart', ['1.1.1.1', '2.2.2.2'], [200, 200]],
    [
      'what a client wrote itself, to the left, is not looked at',
      ['6.6.6.6, 1.1.1.1', '7.7.7.7, 1.1.1.1'],
      [200, 429],
    ],
    ['our own proxies are skipped, from the right', ['1.1.1.1, 10.0.0.7', '1.1.1.1, 10.0.0.8'], [200, 429]],
    [
      'nonsense ends the chain at the last that is known',
      ['1.1.1.1, nonsense', '2.2.2.2, nonsense'],
      [200, 429],
    ],
    ['IPv6 clients of one network are one', ['2a00:1:2:3::1', '2a00:1:2:3:4:5:6:7'], [200, 429]],
    ['and of two are two', ['2a00:1:2:3::1', '2a00:1:2:4::1'], [200, 200]],
    ['an IPv4 address in IPv6 is IPv4', ['::ffff:1.1.1.1', '1.1.1.1'], [200, 429]],
  ])('%s', async (_, chains, statuses) => {
    expect(await statusesOf({ proxies }, chains)).toEqual(statuses);
  });

  test('a network that is none is refused', () => {
    expect(() => peers('10.0.0.0/33')).toThrow(
      'peers: expected an address or a network such as "10.0.0.0/8"',
    );
    for (const range of ['localhost', '10.0.0.0/', '10.0.0.0/8/9', '10.0.0.0/1e1', '10.0.0.0/ 8', '/8']) {
      expect(() => peers(range)).toThrow(`got "${range}"`);
    }
  });
});

describe.each(frameworks)('13. slow clients on $name', ({ serve }) => {
  const closed = (socket: net.Socket) =>
    new Promise<string>((resolve) => {
      let heard = '';
      socket.on('data', (chunk) => {
        heard += chunk;
      });
      socket.on('error', () => {});
      socket.on('close', () => resolve(heard));
    });
  const answered = (socket: net.Socket) => {
    socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    return new Promise((resolve) => socket.once('data', resolve));
  };

  test('lose their connection, and one address has only so many', async () => {
    // So long that those who are not slow are in time on a machine with other work, too.
    const options = { ...hardenedServer, headersTimeout: 500, connectionsCheckingInterval: 10 };
    await using running = await serve([], () => reply(200, 'ok'), options);
    harden(running.server, { connectionsPerAddressMax: 2 });
    // A refused connection may end with a reset, which is an error.
    const connect = () => net.connect(running.port, '127.0.0.1').on('error', () => {});
    const slow = connect();
    slow.write('GET / HTTP/1.1\r\nx-slow: ');
    expect(await closed(slow)).toContain('408');

    const [one, two] = [connect(), connect()];
    await Promise.all([one, two].map(answered));
    const third = connect();
    expect(await closed(third)).toBe('');
    one.destroy();
    two.destroy();
  });

  test('that do not read their response lose it', async () => {
    const bytes = 64 * 1024 * 1024;
    await using running = await serve([], () => reply(200, 'x'.repeat(bytes)));
    harden(running.server, { writeIdle: '50ms' });
    const ended = new Promise((resolve) => {
      running.server.once('connection', (socket: net.Socket) => socket.once('close', resolve));
    });
    const socket = net.connect(running.port, '127.0.0.1');
    let received = 0;
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received += chunk.length;
    });
    socket.pause();
    socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    await ended;
    socket.resume();
    await new Promise((resolve) => socket.once('close', resolve));
    // The kernel's buffers are all that it gets.
    expect(received).toBeLessThan(bytes);
  });

  test('are those who keep a handler waiting, not those whom a handler keeps waiting', async () => {
    const idle = Promise.withResolvers<void>();
    await using running = await serve([], () => idle.promise.then(() => reply(200, 'worth it')));
    harden(running.server, { writeIdle: '20ms' });
    running.server.once('connection', (socket: net.Socket) => {
      socket.once('timeout', () => setImmediate(idle.resolve));
    });
    expect(await (await fetch(running.origin)).text()).toBe('worth it');
  });
});

test('13. IPv4 on a socket for both families is still one address each', () => {
  expect(addressKey('::ffff:10.0.0.1')).toBe('10.0.0.1');
  expect(addressKey('::ffff:10.0.0.2')).toBe('10.0.0.2');
  expect(addressKey('2001:db8:0:1::7')).toBe('2001:db8:0:1::/64');
});

test('16. a Retry-After is whole seconds, never early, and spread upwards', () => {
  expect(retryAfterHeader(1, () => 0)).toBe('1');
  expect(retryAfterHeader(1001, () => 0)).toBe('2');
  expect(retryAfterHeader(10_000, () => 0)).toBe('10');
  expect(retryAfterHeader(10_000, () => 0.999)).toBe('15');
  expect(retryAfterHeader(1e12, () => 0, 60_000)).toBe('60');
});

/** Whatever else the machine does. */
const calm = { readings: { utilization: () => 0, heap: () => 0 } };

describe('17. who calls itself critical', () => {
  const priorityOf = async (parts: readonly Part[]) => {
    let seen: string | undefined;
    await using server = await plain.serve(parts, ({ context }) => {
      seen = context.priority;
      return reply(200);
    });
    await fetch(server.origin, { headers: { holdfast: 'priority=critical' } });
    return seen;
  };

  test('is not, from outside', async () => {
    expect(await priorityOf([deadline({ inside: peers('10.0.0.0/8') }), shed({}, calm)])).toBe('default');
    expect(await priorityOf([deadline(), shed({}, calm)])).toBe('default');
  });

  test('is, from inside, unless the route knows better', async () => {
    const inside = peers('127.0.0.1');
    expect(await priorityOf([shed({ inside }, calm)])).toBe('critical');
    expect(await priorityOf([shed({ inside, priority: () => 'sheddable' }, calm)])).toBe('sheddable');
  });
});

test.each([
  ['patience=999999999999', 30_000],
  ['patience=-5', 30_000],
  ['patience=NaN', 30_000],
  ['patience="500"', 30_000],
  ['patience=500, patience=600', 600],
  ['%%%', 30_000],
  [`patience=5, x="${'a'.repeat(300)}"`, 30_000],
])('18. a deadline only shortens: %s', async (header, atMost) => {
  let left = 0;
  await using server = await plain.serve([deadline()], ({ context }) => {
    left = context.patienceLeft;
    return reply(200);
  });
  expect((await fetch(server.origin, { headers: { holdfast: header } })).status).toBe(200);
  expect(left).toBeLessThanOrEqual(atMost);
  expect(left).toBeGreaterThan(atMost - 500);
});

describe('19. health', () => {
  test('tells strangers no details, and lets them hammer nothing', async () => {
    let checks = 0;
    const part = health({ dependencies: { db: { check: () => ++checks } }, token: 'secret', rate: '10/s' });
    await using server = await plain.serve([part, bulkhead({ concurrent: 1 })], () => reply(200));
    const ready = (headers = {}) => fetch(`${server.origin}/readyz`, { headers });
    expect(await (await ready()).json()).toEqual({ status: 'pass' });
    expect(await (await ready({ authorization: 'Bearer secreT' })).json()).toEqual({ status: 'pass' });
    expect(await (await ready({ authorization: 'Bearer secret' })).json()).toMatchObject({
      status: 'pass',
      checks: { db: { status: 'pass', critical: true } },
    });
    const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await ready()).status));
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    expect(checks).toBe(1);
  });
});

test('20. no header takes longer to read than it is long', () => {
  const evil = ['"'.repeat(50_000), `"${'\\'.repeat(50_000)}`, 'a,'.repeat(50_000), '"a" '.repeat(50_000)];
  for (const line of evil) expect(readKey([line])).toBe('invalid');
});
