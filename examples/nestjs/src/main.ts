// An orders API with NestJS: each order is placed once, and overload, late requests and shutdowns are handled.
import { deadline, gracefulShutdown, health, idempotency, rateLimit, shed } from '@holdfast/server';
import { guard } from '@holdfast/server/express';
import { openSqlite } from '@holdfast/sqlite';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { OrderService, orderModule } from './orders.ts';

const { PORT = '3000', ORDERS_FILE = 'orders.db' } = process.env;

const engine = await openSqlite({ file: ORDERS_FILE });
await engine.transaction((database) =>
  database.exec('CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL)'),
);

const app = await NestFactory.create<NestExpressApplication>(orderModule(engine), {
  logger: ['error', 'warn'],
  // The guard reads a body before a parser does, so the parser is added behind it.
  bodyParser: false,
});
const orders = app.get(OrderService);
const ready = health({ dependencies: { orders: { check: () => orders.count() } } });

// These stand before all routes: /livez, /readyz, 2 s for a request, 100 requests a minute, fewer under overload, and
// a key for each POST.
app.use(
  guard([
    ready,
    deadline({ timeout: '2s' }),
    rateLimit({ limits: { rate: '100/m' } }),
    shed(),
    idempotency({ ledger: engine.ledger, scope: 'public', transactional: true }),
  ]),
);
app.useBodyParser('json');

const server = await app.listen(PORT, '127.0.0.1');
console.log(`orders are taken on ${await app.getUrl()}`);
gracefulShutdown(server, {
  health: ready,
  drainDelay: '2s',
  before: () => console.log('not ready any more; running requests may finish'),
  async after() {
    await app.close();
    await engine.close();
    console.log('closed');
  },
});
