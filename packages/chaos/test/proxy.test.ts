import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { virtualClock } from 'holdfast/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { chaosProxy } from '../src/proxy.ts';
import { connect, deadPort, httpServer, readAll, tcpServer } from './loopback.ts';
import { ask, drainInto, echo, eventually, mebibyte, proxyTo, settled, turn } from './proxied.ts';

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
    ['faults', [], 'faults: not an option; there are listen, upstream, spec, seed, clock, random'],
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
        const timer = setTimeout(() => caller.abort(new Error('late')), 300);
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
    expect(outcomes.ok).toBeGreaterThan(0);
    expect(outcomes.failed).toBeGreaterThan(0);
    expect(outcomes.ok + outcomes.failed + outcomes.late).toBe(200);
    await proxy.close();
    expect(proxy.state().connections.open).toBe(0);
    await eventually(() => expect(sockets.size).toBe(0));
  });
});
