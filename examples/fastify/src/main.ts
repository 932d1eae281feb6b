// An orders API with Fastify: each order is placed once, and overload, late requests and shutdowns are handled.
import type { DatabaseSync } from 'node:sqlite';
import { setTimeout as wait } from 'node:timers/promises';
import {
  contextOf,
  deadline,
  gracefulShutdown,
  health,
  idempotency,
  rateLimit,
  shed,
} from '@holdfast/server';
import { guard } from '@holdfast/server/fastify';
import { openSqlite } from '@holdfast/sqlite';
import fastify from 'fastify';

const { PORT = '3000', ORDERS_FILE = 'orders.db' } = process.env;

const engine = await openSqlite({ file: ORDERS_FILE });
await engine.transaction((database) =>
  database.exec('CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL)'),
);
const countOrders = (database: DatabaseSync) =>
  Number(database.prepare('SELECT count(*) AS count FROM orders').get()?.count);

const ready = health({ dependencies: { orders: { check: () => engine.transaction(countOrders) } } });
const app = fastify();

// These stand before all routes: /livez, /readyz, 2 s for a request, 100 requests a minute, fewer under overload, and
// a key for each POST.
await app.register(guard, {
  parts: [
    ready,
    deadline({ timeout: '2s' }),
    rateLimit({ limits: { rate: '100/m' } }),
    shed(),
    idempotency({ ledger: engine.ledger, scope: 'public', transactional: true }),
  ],
});

app.post<{ Body: { item?: unknown } | undefined }>('/orders', async (request, reply) => {
  const item = request.body?.item;
  if (typeof item !== 'string') return reply.code(400).send({ error: 'item is missing' });
  // The order and the record of its key are one transaction: both are stored, or neither is.
  const answer = await contextOf<DatabaseSync>(request)!.idempotent!.commit((database) => {
    const { lastInsertRowid: id } = database.prepare('INSERT INTO orders (item) VALUES (?)').run(item);
    const headers = { 'content-type': 'application/json', location: `/orders/${id}` };
    return { status: 201, headers, body: JSON.stringify({ id: Number(id), item }) };
  });
  return reply.code(answer.status).headers(answer.headers).send(answer.body);
});

app.get('/orders', async () => ({ orders: await engine.transaction(countOrders) }));

// Slow on purpose. It stops when the client disconnects, and when the time of the request is over.
app.get('/report', async (request) => {
  await wait(500, undefined, { signal: contextOf(request)!.signal });
  return { orders: await engine.transaction(countOrders) };
});

console.log(`orders are taken on ${await app.listen({ port: Number(PORT), host: '127.0.0.1' })}`);
gracefulShutdown(app, {
  health: ready,
  drainDelay: '2s',
  before: () => console.log('not ready any more; running requests may finish'),
  async after() {
    await engine.close();
    console.log('closed');
  },
});
