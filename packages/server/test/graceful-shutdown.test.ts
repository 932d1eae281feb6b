import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, createServer, get } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import fastify from 'fastify';
import { virtualClock } from 'holdfast/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { gracefulShutdown } from '../src/index.ts';
import { listen } from './frameworks.ts';

const program = path.join(import.meta.dirname, 'draining-process.ts');

/** Answers of requests that were sent one after the other by many clients, until the server refused connections. */
async function shutDownUnderLoad(
  clients: number,
): Promise<{ answered: number; lost: string[]; code: number }> {
  const child = spawn(process.execPath, ['--conditions=holdfast-source', '--no-warnings', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(child.stdout, 'data');
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  onTestFinished(() => agent.destroy());
  const lost: string[] = [];
  let answered = 0;
  let isRefused = false;
  const send = () =>
    new Promise<void>((resolve) => {
      get({ port: Number(String(line)), host: '127.0.0.1', agent }, (response) => {
        response.resume().on('end', () => {
          answered++;
          resolve();
        });
      }).on('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNREFUSED') isRefused = true;
        else lost.push(error.code ?? error.message);
        resolve();
      });
    });
  const client = async () => {
    while (!isRefused) {
      await send();
      if (answered === 500) child.kill('SIGTERM');
    }
  };
  const exited = once(child, 'exit');
  await Promise.all(Array.from({ length: clients }, client));
  const [code] = await exited;
  return { answered, lost, code };
}

describe('a process that is ended by SIGTERM under load', () => {
  test('answers every request that was sent to it', { timeout: 60_000 }, async () => {
    for (let run = 0; run < 4; run++) {
      const { answered, lost, code } = await shutDownUnderLoad(40);
      expect({ lost, code }).toEqual({ lost: [], code: 0 });
      expect(answered).toBeGreaterThan(500);
    }
  });
});

/** A server whose handler waits for `release`, and one connection to it that is kept open. */
async function setup() {
  const release = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    if (request.url === '/slow') await release.promise;
    response.end(`${request.url} done`);
  });
  const running = await listen(server);
  onTestFinished(() => running[Symbol.asyncDispose]());
  const ending = gracefulShutdown(server, { drainDelay: '1ms', patience: '10s', signals: [] });
  const client = () => {
    const socket = connect(running.port, '127.0.0.1').setEncoding('utf8');
    let heard = '';
    socket.on('data', (chunk) => {
      heard += chunk;
    });
    socket.on('error', () => {});
    return {
      ask: (url: string) => void socket.write(`GET ${url} HTTP/1.1\r\nhost: a\r\n\r\n`),
      answer: (url: string) => expect.poll(() => heard).toContain(`${url} done`),
      closed: once(socket, 'close'),
      heard: () => heard.toLowerCase(),
    };
  };
  return { server, release, ending, client };
}

test('a request that began before the shutdown is told that its connection will be closed', async () => {
  const { server, release, ending, client } = await setup();
  const { ask, answer, heard, closed } = client();
  ask('/slow');
  await once(server, 'request');
  const ended = ending.shutdown();
  release.resolve();
  await answer('/slow');
  expect(heard()).toContain('connection: close');
  await closed;
  expect(await ended).toBe(0);
});

test('a request that was on its way when the server stopped listening is answered', async () => {
  const { server, ending, client } = await setup();
  const { ask, answer, heard, closed } = client();
  ask('/first');
  await answer('/first');
  expect(heard()).not.toContain('connection: close');
  const ended = ending.shutdown();
  await expect.poll(() => server.listening, { interval: 1 }).toBe(false);
  ask('/second');
  await answer('/second');
  expect(heard()).toContain('connection: close');
  await closed;
  expect(await ended).toBe(0);
});

test('a connection on which nothing is asked any more does not hold the shutdown up', async () => {
  const { ending, client } = await setup();
  const { ask, answer, closed } = client();
  ask('/first');
  await answer('/first');
  const ended = ending.shutdown();
  await closed;
  expect(await ended).toBe(0);
});

test('a second signal ends the process at once', async () => {
  const child = spawn(
    process.execPath,
    ['--conditions=holdfast-source', '--no-warnings', program, 'drainDelay=1h'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const exited = once(child, 'exit');
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  const [line] = await once(child.stdout, 'data');
  expect(String(line)).toBe('draining\n');
  // Signals that come together are one, so this test sends more.
  const again = setInterval(() => child.kill('SIGINT'), 20);
  onTestFinished(() => clearInterval(again));
  expect(await exited).toEqual([1, null]);
});

test('a Fastify app is closed with its hooks, after the last response', async () => {
  const app = fastify();
  const happened: string[] = [];
  const release = Promise.withResolvers<void>();
  app.get('/', async () => {
    await release.promise;
    happened.push('response');
    return 'done';
  });
  app.addHook('onClose', async () => {
    happened.push('onClose');
  });
  const origin = await app.listen({ port: 0, host: '127.0.0.1' });
  onTestFinished(() => app.close());
  const ending = gracefulShutdown(app, {
    drainDelay: '1ms',
    signals: [],
    after: () => void happened.push('after'),
  });
  const running = fetch(origin);
  await once(app.server, 'request');
  const ended = ending.shutdown();
  release.resolve();
  expect(await (await running).text()).toBe('done');
  expect(await ended).toBe(0);
  expect(happened).toEqual(['response', 'onClose', 'after']);
});

describe('Ctrl-C', () => {
  /** Sends a signal to the shutdown alone, because other code of this process may listen, too. */
  async function signalled(signal: 'SIGINT' | 'SIGTERM', isTerminal: boolean) {
    const clock = virtualClock();
    const release = Promise.withResolvers<void>();
    const server = createServer(async (_request, response) => {
      await release.promise;
      response.end('done');
    });
    const running = await listen(server);
    onTestFinished(() => running[Symbol.asyncDispose]());
    const others = new Set(process.listeners(signal));
    const ending = gracefulShutdown(server, { exit: false, signals: signal }, { clock, isTerminal });
    onTestFinished(() => ending.dispose());
    const response = fetch(running.origin);
    await once(server, 'request');
    for (const each of process.listeners(signal)) if (!others.has(each)) each(signal);
    return { clock, release, server, response, ending };
  }

  test('in a terminal skips the delay for load balancers, and running requests still end', async () => {
    const { release, server, response, ending } = await signalled('SIGINT', true);
    await expect.poll(() => server.listening).toBe(false);
    release.resolve();
    expect(await (await response).text()).toBe('done');
    expect(await ending.shutdown()).toBe(0);
  });

  test.each([
    ['SIGINT', false],
    ['SIGTERM', true],
  ] as const)('is not %s with a terminal: %s', async (signal, isTerminal) => {
    const { clock, release, server, response } = await signalled(signal, isTerminal);
    await clock.advance('4s');
    expect(server.listening).toBe(true);
    await clock.advance('2s');
    await expect.poll(() => server.listening).toBe(false);
    release.resolve();
    await response;
  });
});
