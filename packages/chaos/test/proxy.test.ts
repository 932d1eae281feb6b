import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { virtualClock } from 'holdfast/testing';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type ChaosProxyOptions, chaosProxy } from '../src/proxy.ts';
import type { FaultSpec } from '../src/spec.ts';
import { connect, deadPort, httpServer, readAll, tcpServer } from './loopback.ts';

async function proxyTo(upstream: number, faults: FaultSpec[] = [], more: Partial<ChaosProxyOptions> = {}) {
  const proxy = await chaosProxy({ upstream, spec: { faults }, ...more });
  onTestFinished(() => proxy.close());
  return proxy;
}

/** A server that answers each piece it gets with the same piece, and ends when its client does. */
async function echo() {
  const received: Buffer[] = [];
  const server = await tcpServer((socket) => {
    socket.on('data', (chunk) => {
      received.push(chunk);
      socket.write(chunk);
    });
    socket.on('end', () => socket.end());
  });
  return { ...server, received: () => Buffer.concat(received).toString() };
}

async function ask(socket: Socket, text: string): Promise<string> {
  socket.write(text);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  return answer.toString();
}

const mebibyte = 1024 * 1024;
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const eventually = (check: () => void) => vi.waitFor(check, { interval: 2, timeout: 10_000 });

/** The value once it is above zero and has stayed the same for many turns of the event loop. */
async function settled(read: () => number): Promise<number> {
  let last = 0;
  for (let same = 0; same < 300 || last === 0; same++) {
    await turn();
    if (read() !== last) same = 0;
    last = read();
  }
  return last;
}

/** Reads from a server's only connection until so many bytes have come. */
async function drainInto(sockets: Set<Socket>, size: number): Promise<void> {
  await eventually(() => expect(sockets.size).toBe(1));
  const [socket] = sockets as Set<Socket>;
  let received = 0;
  await new Promise<void>((resolve) => {
    socket!.on('data', (bytes) => {
      received += bytes.length;
      if (received === size) resolve();
    });
    socket!.resume();
  });
}

const never = (what: string) => () => {
  throw new Error(`${what} was not to happen`);
};

describe('without faults', () => {
  test('passes bytes both ways, and counts them', async () => {
    const { port } = await echo();
    const proxy = await proxyTo(port);
    const client = connect(proxy.port);
    expect(await ask(client, 'hello')).toBe('hello');
    client.end('bye');
    expect((await readAll(client)).bytes.toString()).toBe('bye');
    expect(proxy.state()).toMatchObject({
      upstream: `127.0.0.1:${port}`,
      listen: `127.0.0.1:${proxy.port}`,
      listening: true,
      connections: { accepted: 1 },
      bytes: { fromClient: 8, toUpstream: 8, fromUpstream: 8, toClient: 8 },
      exchanges: 2,
      struck: 0,
      faults: {},
    });
    await eventually(() => expect(proxy.state().connections.open).toBe(0));
    proxy.resetCounters();
    expect(proxy.state()).toMatchObject({
      connections: { accepted: 0 },
      bytes: { fromClient: 0 },
      exchanges: 0,
    });
  });

  test('keeps a half-closed connection half-closed', async () => {
    // Answers only when its client has said all.
    const { port } = await tcpServer((socket) => {
      let said = '';
      socket.on('data', (chunk) => {
        said += chunk;
      });
      socket.on('end', () => socket.end(`you said ${said}`));
    });
    const client = connect((await proxyTo(port)).port);
    client.end('all');
    expect(await readAll(client)).toMatchObject({
      ended: true,
      code: undefined,
      bytes: Buffer.from('you said all'),
    });
  });

  test('passes a reset on, either way', async () => {
    const { port, sockets } = await echo();
    const proxy = await proxyTo(port);
    const client = connect(proxy.port);
    await ask(client, 'x');
    for (const socket of sockets) socket.resetAndDestroy();
    expect((await readAll(client)).code).toBe('ECONNRESET');

    const other = connect(proxy.port);
    await ask(other, 'x');
    const [server] = sockets as Set<Socket>;
    other.resetAndDestroy();
    const [error] = await once(server!, 'error').catch((thrown) => [thrown]);
    expect(error.code).toBe('ECONNRESET');
  });

  test('resets its client where the server cannot be reached', async () => {
    const proxy = await proxyTo(await deadPort());
    expect((await readAll(connect(proxy.port))).code).toBe('ECONNRESET');
    expect(proxy.state().connections.open).toBe(0);
  });

  test('makes a sender wait whose receiver does not read', async () => {
    const halted = await tcpServer((socket) => socket.pause());
    const proxy = await proxyTo(halted.port);
    const client = connect(proxy.port);
    // More than all the buffers of the system on the way.
    const size = 64 * mebibyte;
    client.end(Buffer.alloc(size));
    const taken = await settled(() => proxy.state().bytes.fromClient);
    expect(taken).toBeLessThan(size);
    await drainInto(halted.sockets, size);
    expect(proxy.state().bytes).toMatchObject({ fromClient: size, toUpstream: size });
  });

  test('makes a sender wait when it holds back a mebibyte', async () => {
    const clock = virtualClock();
    const server = await tcpServer((socket) => socket.pause());
    const proxy = await proxyTo(server.port, [{ kind: 'latency', delay: '1s', direction: 'request' }], {
      clock,
    });
    const size = 16 * mebibyte;
    connect(proxy.port).end(Buffer.alloc(size));
    const taken = await settled(() => proxy.state().bytes.fromClient);
    expect(taken).toBeGreaterThanOrEqual(mebibyte);
    expect(taken).toBeLessThan(1.2 * mebibyte);
    const drained = drainInto(server.sockets, size);
    while (proxy.state().bytes.toUpstream < size) {
      await clock.advance('1s');
      await turn();
    }
    await drained;
  });

  test('whatever is sent arrives, in order, however it is cut up and slowed', async () => {
    const { port } = await echo();
    const proxy = await proxyTo(port, [
      { kind: 'latency', rate: 0.5, delay: { distribution: 'uniform', max: 2 }, direction: 'both' },
      { kind: 'slow', rate: 0.3, bytesPerSecond: 4_000_000, direction: 'both' },
    ]);
    const sizes = fc.array(fc.integer({ min: 1, max: 60_000 }), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(sizes, async (pieces) => {
        const all = pieces.map((size) => randomBytes(size));
        const client = connect(proxy.port);
        for (const piece of all) client.write(piece);
        client.end();
        const { bytes, code } = await readAll(client);
        expect(code).toBeUndefined();
        expect(bytes.equals(Buffer.concat(all))).toBe(true);
      }),
      { numRuns: 20 },
    );
  });
});

describe('latency', () => {
  test('holds the answer back until it is time', async () => {
    const clock = virtualClock();
    const { port, received } = await echo();
    const proxy = await proxyTo(port, [{ kind: 'latency', delay: '1h' }], { clock });
    const client = connect(proxy.port);
    const answer = ask(client, 'hello');
    await eventually(() => expect(proxy.state().bytes.fromUpstream).toBe(5));
    expect(received()).toBe('hello');
    await clock.advance('59m');
    expect(proxy.state().bytes.toClient).toBe(0);
    await clock.advance('1m');
    expect(await answer).toBe('hello');
  });

  test('holds the request back', async () => {
    const clock = virtualClock();
    const { port } = await echo();
    const proxy = await proxyTo(port, [{ kind: 'latency', delay: '1h', direction: 'request' }], { clock });
    const answer = ask(connect(proxy.port), 'hello');
    await eventually(() => expect(proxy.state().bytes.fromClient).toBe(5));
    await clock.advance('59m');
    expect(proxy.state().bytes.toUpstream).toBe(0);
    await clock.advance('1m');
    expect(await answer).toBe('hello');
  });

  test('takes real time', async () => {
    const { port } = await echo();
    const proxy = await proxyTo(port, [{ kind: 'latency', delay: '25ms', direction: 'both' }]);
    const client = connect(proxy.port);
    await once(client, 'connect');
    const startedAt = performance.now();
    await ask(client, 'hello');
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(40);
  });

  test('leaves no alarm behind when the client goes', async () => {
    const clock = virtualClock();
    const { port } = await echo();
    const proxy = await proxyTo(port, [{ kind: 'latency', delay: '1h' }], { clock });
    const client = connect(proxy.port);
    client.write('hello');
    await eventually(() => expect(clock.pendingTimers).toBe(1));
    client.resetAndDestroy();
    await eventually(() => expect(proxy.state().connections.open).toBe(0));
    expect(clock.pendingTimers).toBe(0);
  });
});

test('a slow lane passes bytes at its speed', async () => {
  const clock = virtualClock();
  const { port } = await tcpServer((socket) => socket.end(Buffer.alloc(1000)));
  const proxy = await proxyTo(port, [{ kind: 'slow', bytesPerSecond: 100 }], { clock });
  const client = connect(proxy.port);
  const all = readAll(client);
  await eventually(() => expect(proxy.state().bytes.fromUpstream).toBe(1000));
  await clock.advance('5s');
  expect(proxy.state().bytes.toClient).toBe(500);
  await clock.advance('5s');
  expect((await all).bytes.length).toBe(1000);
});

describe('resets', () => {
  test('before the first byte of the answer, when the server has got everything', async () => {
    const { port, received } = await echo();
    const proxy = await proxyTo(port, [{ kind: 'reset' }]);
    const client = connect(proxy.port);
    client.write('hello');
    expect(await readAll(client)).toEqual({ bytes: Buffer.alloc(0), ended: false, code: 'ECONNRESET' });
    expect(received()).toBe('hello');
    expect(proxy.state()).toMatchObject({ bytes: { toUpstream: 5, toClient: 0 }, faults: { reset: 1 } });
  });

  test('after so many bytes of the answer', async () => {
    const { port } = await echo();
    const client = connect((await proxyTo(port, [{ kind: 'reset', afterBytes: 3 }])).port);
    client.write('hello');
    expect(await readAll(client)).toEqual({ bytes: Buffer.from('hel'), ended: false, code: 'ECONNRESET' });
  });

  test('before a byte of the request reaches the server', async () => {
    const { port, received } = await echo();
    const proxy = await proxyTo(port, [{ kind: 'reset', direction: 'request', every: 2 }]);
    const client = connect(proxy.port);
    expect(await ask(client, 'first')).toBe('first');
    client.write('second');
    expect((await readAll(client)).code).toBe('ECONNRESET');
    expect(received()).toBe('first');
    expect(proxy.state().bytes.toUpstream).toBe(5);
  });

  test('after so many bytes of the request', async () => {
    const { port, received } = await echo();
    const proxy = await proxyTo(port, [{ kind: 'reset', direction: 'request', afterBytes: 2 }]);
    const client = connect(proxy.port);
    client.write('hello');
    expect((await readAll(client)).code).toBe('ECONNRESET');
    expect(proxy.state().bytes.toUpstream).toBe(2);
    expect('hello'.startsWith(received())).toBe(true);
  });
});

test('truncates an answer with an orderly end', async () => {
  const { port, sockets } = await echo();
  const proxy = await proxyTo(port, [{ kind: 'truncate', afterBytes: 3 }]);
  const client = connect(proxy.port);
  client.write('hello');
  expect(await readAll(client)).toEqual({ bytes: Buffer.from('hel'), ended: true, code: undefined });
  await eventually(() => expect([sockets.size, proxy.state().connections.open]).toEqual([0, 0]));
});

describe('hangs', () => {
  test('accepts, and does not even call the server', async () => {
    const { port } = await tcpServer(never('a connection'));
    const proxy = await proxyTo(port, [{ kind: 'hang' }]);
    const client = connect(proxy.port);
    client.on('data', never('an answer'));
    client.write('hello');
    await eventually(() => expect(proxy.state().bytes.fromClient).toBe(5));
    client.end();
    await eventually(() => expect(proxy.state().connections.open).toBe(0));
  });

  test('swallows requests', async () => {
    const { port, received } = await tcpServerWithGreeting();
    const proxy = await proxyTo(port, [{ kind: 'hang', direction: 'request' }]);
    const client = connect(proxy.port);
    // What the server says of its own accord still comes.
    await once(client, 'data');
    proxy.resetCounters();
    client.write('hello');
    await eventually(() => expect(proxy.state().bytes.fromClient).toBe(5));
    client.end();
    await eventually(() => expect(proxy.state().connections.open).toBe(0));
    expect(received()).toBe('');
  });

  async function tcpServerWithGreeting() {
    let received = '';
    const server = await tcpServer((socket) => {
      socket.write('welcome');
      socket.on('data', (chunk) => {
        received += chunk;
      });
    });
    return { ...server, received: () => received };
  }

  test('swallows answers, when the work is done', async () => {
    const { port, received, sockets } = await echo();
    const proxy = await proxyTo(port, [{ kind: 'hang', direction: 'response' }]);
    const client = connect(proxy.port);
    client.on('data', never('an answer'));
    client.write('hello');
    await eventually(() => expect(proxy.state().bytes.fromUpstream).toBe(5));
    expect(received()).toBe('hello');
    client.end();
    await eventually(() => expect([proxy.state().connections.open, sockets.size]).toEqual([0, 0]));
  });

  test('a server that dies does not end the hanging', async () => {
    const { port, sockets } = await echo();
    const proxy = await proxyTo(port, [{ kind: 'hang', direction: 'response' }]);
    const client = connect(proxy.port);
    client.write('hello');
    await eventually(() => expect(proxy.state().bytes.fromUpstream).toBe(5));
    for (const socket of sockets) socket.resetAndDestroy();
    await eventually(() => expect(sockets.size).toBe(0));
    expect(proxy.state().connections.open).toBe(1);
    client.end();
    await eventually(() => expect(proxy.state().connections.open).toBe(0));
  });

  test('what was swallowed cannot be healed: it is reset', async () => {
    const { port } = await echo();
    const proxy = await proxyTo(port);
    const idle = connect(proxy.port);
    await ask(idle, 'x');
    await proxy.set({ faults: [{ kind: 'hang' }] });
    const hung = connect(proxy.port);
    hung.write('hello');
    await eventually(() => expect(proxy.state().faults).toEqual({ hang: 1 }));
    await proxy.heal();
    expect((await readAll(hung)).code).toBe('ECONNRESET');
    expect(await ask(idle, 'still here')).toBe('still here');
  });
});

describe('refusals', () => {
  const code = async (port: number) => {
    const client = connect(port);
    const [error] = await once(client, 'connect').then(
      () => [undefined],
      (thrown) => [thrown],
    );
    client.destroy();
    return error?.code;
  };

  test('of all connections are true ones, and end on time', async () => {
    const clock = virtualClock();
    const { port } = await echo();
    const proxy = await proxyTo(port, [{ kind: 'refuse', from: '1s', flap: { up: '2s', down: '1s' } }], {
      clock,
    });
    const open = connect(proxy.port);
    await ask(open, 'x');
    await clock.advance('2999ms');
    expect(await code(proxy.port)).toBeUndefined();
    await clock.advance('1ms');
    expect(await code(proxy.port)).toBe('ECONNREFUSED');
    expect(proxy.state().listening).toBe(false);
    // Those that are open stay so.
    expect(await ask(open, 'y')).toBe('y');
    await clock.advance('1s');
    await eventually(() => expect(proxy.state().listening).toBe(true));
    expect(await code(proxy.port)).toBeUndefined();
    await proxy.close();
    expect(clock.pendingTimers).toBe(0);
  });

  test('can cut what is open', async () => {
    const { port } = await echo();
    const proxy = await proxyTo(port);
    const open = connect(proxy.port);
    await ask(open, 'x');
    await proxy.set({ faults: [{ kind: 'refuse', cut: true }] });
    expect((await readAll(open)).code).toBe('ECONNRESET');
    expect(await code(proxy.port)).toBe('ECONNREFUSED');
    await proxy.heal();
    expect(await code(proxy.port)).toBeUndefined();
  });

  test('of some connections accept and reset, and never touch the server', async () => {
    const { port, received } = await echo();
    const proxy = await proxyTo(port, [{ kind: 'refuse', first: 1 }]);
    expect((await readAll(connect(proxy.port))).code).toBe('ECONNRESET');
    expect(received()).toBe('');
    expect(await ask(connect(proxy.port), 'second')).toBe('second');
  });

  test('are not for exchanges on a connection that is open', async () => {
    const { port } = await echo();
    const proxy = await proxyTo(port, [{ kind: 'refuse', every: 2 }]);
    const client = connect(proxy.port);
    expect([await ask(client, 'a'), await ask(client, 'b')]).toEqual(['a', 'b']);
  });
});

describe('control', () => {
  test('cuts every connection, and takes new ones', async () => {
    const { port, sockets } = await echo();
    const proxy = await proxyTo(port);
    const clients = [connect(proxy.port), connect(proxy.port)];
    for (const client of clients) await ask(client, 'x');
    proxy.cut();
    const ends = await Promise.all(clients.map(readAll));
    expect(ends.map(({ code }) => code)).toEqual(['ECONNRESET', 'ECONNRESET']);
    await eventually(() => expect([proxy.state().connections.open, sockets.size]).toEqual([0, 0]));
    expect(await ask(connect(proxy.port), 'again')).toBe('again');
  });

  test('loses no socket that it cuts while that is sending its end', async () => {
    const clock = virtualClock();
    const { port, sockets } = await tcpServer((socket) => socket.end('bye'));
    const proxy = await proxyTo(port, [{ kind: 'latency', delay: '1s' }], { clock });
    connect(proxy.port);
    await eventually(() => expect(proxy.state().bytes.fromUpstream).toBe(3));
    await clock.advance('1s');
    proxy.cut();
    await eventually(() => expect([proxy.state().connections.open, sockets.size]).toEqual([0, 0]));
  });

  test('reaches connections that are open with the next exchange', async () => {
    const { port } = await echo();
    const proxy = await proxyTo(port);
    const client = connect(proxy.port);
    await ask(client, 'x');
    await proxy.set({ faults: [{ kind: 'reset' }] });
    client.write('y');
    expect((await readAll(client)).code).toBe('ECONNRESET');
  });

  test('a bad document changes nothing', async () => {
    const { port } = await echo();
    const proxy = await proxyTo(port, [{ kind: 'latency', delay: 1 }], { seed: 7 });
    const before = proxy.state().spec;
    expect(before.seed).toBe(7);
    await expect(proxy.set({ faults: [{ kind: 'status' }] })).rejects.toThrow('faults[0].kind');
    expect(proxy.state().spec).toEqual(before);
    expect(await ask(connect(proxy.port), 'x')).toBe('x');
  });

  test('closing leaves no socket, and frees the port', async () => {
    const { port, sockets } = await echo();
    const proxy = await proxyTo(port);
    const client = connect(proxy.port);
    await ask(client, 'x');
    await Promise.all([proxy.close(), readAll(client)]);
    await eventually(() => expect(sockets.size).toBe(0));
    const next = await chaosProxy({ listen: proxy.port, upstream: port });
    await next.close();
  });

  test.each([
    ['upstream', 'nowhere', 'upstream: expected an address such as "127.0.0.1:5432", got "nowhere"'],
    ['upstream', 0, 'upstream: expected an address such as "127.0.0.1:5432", got 0'],
    ['listen', '1.2.3.4:99999', 'listen: expected an address such as "127.0.0.1:5432", got "1.2.3.4:99999"'],
  ])('%s %j is refused', async (field, value, sentence) => {
    await expect(chaosProxy({ upstream: 1, [field]: value })).rejects.toThrow(sentence);
  });

  test('a port that is taken is an error', async () => {
    const { port } = await echo();
    await expect(chaosProxy({ listen: port, upstream: port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});

describe('in front of a web server', () => {
  test('keep-alive requests are exchanges: faults strike requests, not connections', async () => {
    let served = 0;
    const { port } = await httpServer((request, response) => {
      served++;
      request.resume().on('end', () => response.end('x'.repeat(2000)));
    });
    const proxy = await proxyTo(port, [{ kind: 'reset', every: 5 }]);
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const get = () =>
      new Promise<string>((resolve, reject) => {
        http
          .get({ port: proxy.port, agent }, (response) => {
            response
              .on('error', reject)
              .resume()
              .on('end', () => resolve('ok'));
          })
          .on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'odd'));
      });
    const results: string[] = [];
    for (let index = 0; index < 15; index++) results.push(await get());
    expect(results).toEqual(
      Array.from({ length: 15 }, (_, index) => (index % 5 === 4 ? 'ECONNRESET' : 'ok')),
    );
    expect(served).toBe(15);
    expect(proxy.state()).toMatchObject({
      connections: { accepted: 3 },
      exchanges: 15,
      faults: { reset: 3 },
    });
  });

  test('many clients under all faults at once leave nothing behind', async () => {
    const { port, sockets } = await httpServer((request, response) => {
      request.resume().on('end', () => response.end('x'.repeat(20_000)));
    });
    const proxy = await proxyTo(
      port,
      [
        { kind: 'latency', rate: 0.2, delay: { distribution: 'uniform', max: 5 }, direction: 'both' },
        { kind: 'slow', rate: 0.1, bytesPerSecond: 1_000_000 },
        { kind: 'refuse', rate: 0.05 },
        { kind: 'reset', rate: 0.05 },
        { kind: 'reset', rate: 0.05, afterBytes: 5000 },
        { kind: 'reset', rate: 0.05, direction: 'request' },
        { kind: 'truncate', rate: 0.05, afterBytes: 3000 },
        { kind: 'hang', rate: 0.05 },
        { kind: 'hang', rate: 0.05, direction: 'response' },
      ],
      { seed: 3 },
    );
    const outcomes = { ok: 0, failed: 0, late: 0 };
    const worker = async () => {
      for (let index = 0; index < 25; index++) {
        const caller = new AbortController();
        const timer = setTimeout(() => caller.abort(new Error('late')), 150);
        try {
          const response = await fetch(`http://127.0.0.1:${proxy.port}`, {
            method: 'POST',
            body: 'y'.repeat(3000),
            signal: caller.signal,
          });
          expect((await response.text()).length).toBe(20_000);
          outcomes.ok++;
        } catch (error) {
          if ((error as Error).message === 'late') outcomes.late++;
          else if (error instanceof TypeError) outcomes.failed++;
          else throw error;
        } finally {
          clearTimeout(timer);
        }
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    expect(outcomes.ok).toBeGreaterThan(50);
    expect(outcomes.failed).toBeGreaterThan(10);
    expect(outcomes.ok + outcomes.failed + outcomes.late).toBe(200);
    await proxy.close();
    expect(proxy.state().connections.open).toBe(0);
    await eventually(() => expect(sockets.size).toBe(0));
  });
});
