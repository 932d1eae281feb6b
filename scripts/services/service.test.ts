import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, test, vi } from 'vitest';
import { freePort } from './free-port.ts';
import { findPrograms } from './programs.ts';
import { openRegistry } from './registry.ts';
import { ownService, service, titled } from './service.ts';
import { startOwn } from './start-service.ts';

vi.mock('./free-port.ts', { spy: true });

const shared = await service('redis');

describe.skipIf(shared.missing)(titled('services', shared), () => {
  test('give all who ask the same server', async () => {
    expect(await service('redis')).toEqual(shared);
  });

  test('use the server that the environment names', async () => {
    vi.stubEnv('HOLDFAST_REDIS_URL', 'redis://elsewhere:1');
    const registry = await openRegistry();
    const response = await fetch(`${registry.url}/redis`);
    expect(await response.json()).toEqual({ url: 'redis://elsewhere:1' });
    await registry.close();
    vi.unstubAllEnvs();
  });

  test('keep the data and the address over a crash', async () => {
    const server = await ownService('redis', { settings: { appendfsync: 'always' } });
    if (server.missing !== undefined) throw new Error(server.missing);
    const { url, pid } = server;
    expect(await ask(url, 'SET crumb kept')).toBe('+OK');
    await server.restart('kill');
    expect(server.pid).not.toBe(pid);
    expect(await ask(url, 'GET crumb')).toBe('$4');
    await server.stop();
    expect(isAlive(server.pid)).toBe(false);
  });

  test('say why a server did not start', async () => {
    await expect(startOwn('redis', { settings: { maxmemory: 'plenty' } })).rejects.toThrow(
      /redis-server did not start: .*maxmemory/s,
    );
  });

  test('start on another port, if somebody has just taken theirs', async () => {
    const taken = net.createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as net.AddressInfo;
    vi.mocked(freePort).mockResolvedValueOnce(port);
    const server = await startOwn('redis');
    if (server.missing !== undefined) throw new Error(server.missing);
    expect(new URL(server.url).port).not.toBe(String(port));
    await server.stop();
    taken.close();
  });

  test('end with the process that started them, also when that is killed', async () => {
    const owner = spawn(process.execPath, [path.join(import.meta.dirname, 'owner-process.ts')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(createInterface(owner.stdout), 'line');
    const { pid } = JSON.parse(line);
    expect(isAlive(pid)).toBe(true);
    owner.kill('SIGKILL');
    await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false);
  });
});

describe('heavy servers', () => {
  test('of one run wait for each other, until a process closes its connection', async () => {
    const registry = await openRegistry();
    const admitted: string[] = [];
    const connections = ['a', 'b', 'c', 'd'].map((user) =>
      http.get(`${registry.url}/own/kafka?user=${user}`, { agent: false }, (response) =>
        response.once('data', () => admitted.push(user)),
      ),
    );
    for (const connection of connections) connection.on('error', () => {});
    await expect.poll(() => admitted.toSorted()).toEqual(['a', 'b', 'c']);
    connections[1]!.destroy();
    await expect.poll(() => admitted.at(-1)).toBe('d');
    for (const connection of connections) connection.destroy();
    await registry.close();
  });
});

describe('a missing server', () => {
  test('is told by the program that was not found', () => {
    expect(findPrograms(['node', 'no-such-server'])).toEqual({ missing: 'no-such-server not found' });
  });

  test('is a reason to skip in the title of a suite', () => {
    expect(titled('engine', { missing: 'initdb not found' })).toBe('engine (skipped: initdb not found)');
  });

  test('is a failure on a build machine', async () => {
    vi.stubEnv('CI', 'true');
    vi.stubEnv('HOLDFAST_SERVICES', await answering({ missing: 'redis: redis-server not found' }));
    await expect(service('redis')).rejects.toThrow('redis-server not found');
    vi.stubEnv('CI', '');
    expect(await service('redis')).toEqual({ missing: 'redis: redis-server not found' });
    vi.unstubAllEnvs();
  });
});

/** A registry that always says the same. */
async function answering(answer: object): Promise<string> {
  const listener = http.createServer((_, response) => response.end(`${JSON.stringify(answer)}\n`));
  listener.unref().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return `http://127.0.0.1:${(listener.address() as net.AddressInfo).port}`;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** The first line of the answer. */
async function ask(url: string, command: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  socket.write(`${command}\r\n`);
  const [answer] = await once(socket, 'data');
  socket.destroy();
  return String(answer).split('\r\n')[0] ?? '';
}
