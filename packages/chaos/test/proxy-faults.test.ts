import { once } from 'node:events';
import { virtualClock } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import { connect, readAll, tcpServer } from './loopback.ts';
import { ask, echo, eventually, never, proxyTo } from './proxied.ts';

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
