import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { openSqlite, type SqliteEngine } from '@holdfast/sqlite';
import { createAdaptorServer } from '@hono/node-server';
import { expect, onTestFinished, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { orders as fastifyOrders } from '../src/commit-fastify.ts';
import { orders as honoOrders, serveOrders } from '../src/commit-hono.ts';
import { orders as nodeOrders } from '../src/commit-node.ts';
import { orders as expressOrders } from '../src/server-express.ts';
import { payments } from '../src/server-redis.ts';

const redis = await service('redis');
const root = path.join(import.meta.dirname, '../../..');

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a catalogue is healthy, answers as docs/server.md says, and ends with a signal', async () => {
  const program = path.join(root, 'examples/snippets/src/server-fastify.ts');
  const child = spawn(process.execPath, ['--conditions=holdfast-source', '--no-warnings', program], {
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  const origin = String((await once(child.stdout, 'data'))[0]).trim();
  const product = await fetch(`${origin}/products/7`);
  const late = await fetch(`${origin}/products/7`, { headers: { holdfast: 'patience=0' } });
  expect([product.status, late.status]).toEqual([200, 504]);
  const page = await readFile(path.join(root, 'docs/server.md'), 'utf8');
  expect(page).toContain(`\`\`\`text\n${await product.text()}\n${await late.text()}\n\`\`\``);
  expect((await fetch(`${origin}/readyz`)).status).toBe(200);
  child.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
});

test.each<[framework: string, start: (engine: SqliteEngine) => Promise<string>]>([
  ['Express', async (engine) => listen(createServer(expressOrders(engine)))],
  ['node:http', async (engine) => listen(nodeOrders(engine))],
  ['Hono', async (engine) => listen(createAdaptorServer(honoOrders(engine)) as Server)],
  [
    'Fastify',
    async (engine) => {
      const app = await fastifyOrders(engine);
      onTestFinished(() => app.close());
      return app.listen({ port: 0, host: '127.0.0.1' });
    },
  ],
])('with %s, an order is placed once, and its answer is what was committed', async (_name, start) => {
  const engine = await ordersFile();
  const origin = await start(engine);
  const order = () =>
    fetch(`${origin}/orders`, {
      method: 'POST',
      body: '{"item":"book"}',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'a' },
    });
  const first = await order();
  const again = await order();
  for (const answer of [first, again]) {
    expect([answer.status, answer.headers.get('location'), await answer.json()]).toEqual([
      201,
      '/orders/1',
      { id: 1 },
    ]);
  }
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  const rows = await engine.transaction((database) => database.prepare('SELECT * FROM orders').all());
  expect(rows).toHaveLength(1);
});

test('what Hono serves ends gracefully', async () => {
  const { shutdown, dispose, signal } = serveOrders(await ordersFile(), 0, { drainDelay: '1ms' });
  dispose();
  expect([await shutdown(), signal.aborted]).toEqual([0, true]);
});

async function ordersFile(): Promise<SqliteEngine> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-snippet-'));
  const engine = await openSqlite({ file: path.join(folder, 'orders.db') });
  onTestFinished(async () => {
    await engine.close();
    await rm(folder, { recursive: true });
  });
  await engine.transaction((database) =>
    database.exec('CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)'),
  );
  return engine;
}

test.skipIf(redis.missing)(titled('a payment is made once', redis), async () => {
  const origin = await listen(payments(redis.missing === undefined ? redis.url : ''));
  const key = `snippet-${process.pid}`;
  const pay = () => fetch(origin, { method: 'POST', body: '5 EUR', headers: { 'idempotency-key': key } });
  // The first may come before the connection is there.
  await expect.poll(async () => (await pay()).status).toBe(201);
  const again = await pay();
  expect([await again.text(), again.headers.get('idempotent-replayed')]).toEqual(['ch_1', 'true']);
});

test.each(['fastify', 'express', 'redis'])(
  'docs/server.md shows the %s service that the tests run',
  async (name) => {
    const page = await readFile(path.join(root, 'docs/server.md'), 'utf8');
    expect(page).toContain(
      await readFile(path.join(root, `examples/snippets/src/server-${name}.ts`), 'utf8'),
    );
  },
);
