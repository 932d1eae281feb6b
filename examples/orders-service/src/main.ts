// An orders service on PostgreSQL as it is deployed: an API and a consumer in one process, of which many may run.
import type { AddressInfo } from 'node:net';
import { joinFleet, maintenance } from '@holdfast/events';
import { createFetch } from '@holdfast/http';
import { openPostgres } from '@holdfast/postgres';
import { gracefulShutdown, health } from '@holdfast/server';
import { policy } from 'holdfast';
import pg from 'pg';
import { chargeOrders } from './charge-orders.ts';
import { ordersApi, topic } from './orders-api.ts';
import { startPayment } from './payment.ts';

const {
  HOLDFAST_STORE,
  HOST = '127.0.0.1',
  PORT = '3000',
  PAYMENT_URL,
  DRAIN_DELAY_MS = '5000',
} = process.env;
if (!HOLDFAST_STORE) {
  console.error('HOLDFAST_STORE wants the URL of a PostgreSQL database, such as postgres://localhost/shop.');
  process.exit(2);
}

const database = new pg.Pool({ connectionString: HOLDFAST_STORE, max: 4 });
// An idle connection that breaks is replaced; without a listener it would end the process.
database.on('error', (error) => console.error(`database: ${error.message}`));
const engine = await openPostgres({ url: HOLDFAST_STORE, connectionsMax: 4 });
// Processes that start at the same time must not create the table at the same time.
await database.query(`
  BEGIN;
  SELECT pg_advisory_xact_lock(7310);
  CREATE TABLE IF NOT EXISTS orders (id serial PRIMARY KEY, item text NOT NULL, status text NOT NULL DEFAULT 'placed');
  COMMIT`);
await engine.broker.declare(topic);

const pay = createFetch({ policy: policy({ name: 'payment', patience: '3s' }) });
const charging = chargeOrders(engine, pay, PAYMENT_URL ?? (await startPayment()));
const upkeep = maintenance({ engine });
const fleet = joinFleet({ engine, service: 'orders', version: '0.1.0' });
const ready = health({
  dependencies: {
    database: { check: () => database.query('SELECT 1') },
    payment: { policy: 'payment', critical: false },
  },
});
await charging.start();
upkeep.start();

const server = ordersApi(engine, database, ready);
server.listen(Number(PORT), HOST, () => {
  console.log(`orders are taken on http://${HOST}:${(server.address() as AddressInfo).port}`);
});
gracefulShutdown(server, {
  health: ready,
  drainDelay: Number(DRAIN_DELAY_MS),
  async after() {
    await charging.stop(); // finishes what it has begun
    await upkeep.stop();
    await fleet.stop();
    await pay.close();
    await engine.close();
    await database.end();
    console.log('closed');
  },
});
