// The whole system: a shop, flaky payment behind the gateway, a consumer, an assembly, and the console. `npm start` runs it.
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { assemblies } from '@holdfast/assembly';
import { openConsole } from '@holdfast/console';
import { joinFleet, maintenance, producer } from '@holdfast/events';
import { createFetch } from '@holdfast/http';
import { stormRunner } from '@holdfast/simulator';
import { policy, systemRandom } from 'holdfast';
import { chargeOrders, type PlacedOrder, topic } from './system/charge-orders.ts';
import { fulfilOrder } from './system/fulfil-order.ts';
import { startShopGateway } from './system/gateway.ts';
import { type BrokerName, brokers, openStore } from './system/open-store.ts';
import { startPayment } from './system/payment.ts';
import { tour } from './system/tour.ts';

const values = asked();
const ordersMax = values.once ? Number(values.orders) : Infinity;
const opened = await openStore(values.store, values.engine, values.brokers).catch((error: Error) =>
  fail(3, `The shop cannot be opened: ${error.message}`),
);
const { engine } = opened;

const payment = await startPayment(systemRandom);
const gateway = await startShopGateway(payment.urls);
// The step of an assembly retries, so its calls do not; the consumer's call retries for a short while.
const pay = createFetch({
  idempotency: 'derive',
  policy: policy({ name: 'payment', patience: '3s', breaker: { openFor: ['1s', '5s'] } }),
});
const send = createFetch({ idempotency: 'derive', policy: policy({ name: 'services', attempts: 1 }) });

const charging = chargeOrders(engine, pay, gateway.url);
const program = fulfilOrder(send, gateway.url);
const work = assemblies({ engine, programs: [program] });
const upkeep = maintenance({ engine, every: '2s' });
const fleet = joinFleet({ engine, service: 'shop', version: '0.1.0' });
const console_ = await openConsole({
  ...{
    engine,
    assemblies: work,
    gateway,
    simulator: stormRunner(),
    demo: tour(payment, engine.triage!),
  },
  ...{ storeName: opened.name, redact: ['card'] },
  onError: (error) => console.error(`console: ${(error as Error).message}`),
});

await charging.start();
await work.run();
upkeep.start();
const { link } = await console_
  .listen({ port: Number(values.port) })
  .catch((error: Error) =>
    fail(3, `The console cannot listen on port ${values.port}: ${error.message}. Say another with --port.`),
  );
console.log(`\nThe shop is open; its orders are kept in ${opened.name}. The console, with its token:\n`);
console.log(`${link}\n`);
console.log('Ctrl-C lets what is in hand finish, and ends. The next start goes on where this one stopped.\n');

const leaving = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => leaving.abort());
// Orders of two runs on one store must not have the same name.
const run = Math.floor(systemRandom() * 36 ** 4).toString(36);
const selling = producer<PlacedOrder>({ engine, topic, ordering: 'key' });
let sold = 0;
let saidAt = 0;

while (!leaving.signal.aborted) {
  if (sold < ordersMax) await sell();
  else if (await isQuiet()) break;
  if (performance.now() - saidAt > 10_000) await say();
  await wait(values.once ? 20 : 200, undefined, { signal: leaving.signal }).catch(() => {});
}

await charging.stop();
await work.stop();
await upkeep.stop();
await fleet.stop();
await console_.close();
await gateway.gateway.close();
await say();
console.log(
  leaving.signal.aborted ? 'Drained: what was not done waits in the store.' : 'All is done or parked.',
);
await pay.close();
await send.close();
await payment.close();
await opened.close();

async function sell(): Promise<void> {
  sold += 1;
  const order = {
    order: `order-${run}-${sold}`,
    item: sold % 40 === 39 ? 'sold out' : 'a book',
    total: Math.round(systemRandom() * 10_000) / 100,
    card: `5555 ${sold}`,
    tenant: sold % 3 === 0 ? 'acme' : 'northwind',
  };
  await selling.publish({ payload: order, key: order.order, tenant: order.tenant, type: 'order.placed' });
  if (sold % 10 === 0) await work.start(program, order, { id: order.order, tenant: order.tenant });
}

async function isQuiet(): Promise<boolean> {
  const { ready, delayed, leased, suspect } = await charging.lag();
  return ready + delayed + leased + suspect === 0;
}

async function say(): Promise<void> {
  saidAt = performance.now();
  const { counters } = charging.state();
  const parked = await engine.triage!.count({});
  console.log(
    `${sold} sold, ${counters.succeeded} charged, ${counters.successAfterRetry} of them after a retry, ${parked} parked`,
  );
}

function asked() {
  try {
    const { values: given } = parseArgs({
      options: {
        once: { type: 'boolean', default: false },
        orders: { type: 'string', default: '100' },
        store: { type: 'string', default: path.join('.holdfast', 'shop.db') },
        port: { type: 'string', default: '7070' },
        engine: { type: 'string' },
        brokers: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
    if (given.help) {
      console.log(
        'npm start [-- --store <file or postgres URL> --port <port> --engine kafka|rabbitmq|sqs|nats|redis --brokers <addresses> --once --orders <count>]\nnpm start -- orders | tour shows the older, smaller examples.',
      );
      process.exit(0);
    }
    if (!(Number(given.orders) > 0))
      throw new RangeError(`--orders wants a number above zero, got "${given.orders}".`);
    if (!(Number.isInteger(Number(given.port)) && Number(given.port) >= 0 && Number(given.port) < 65_536))
      throw new RangeError(`--port wants a number from 0 to 65535, got "${given.port}".`);
    const engine = brokers.find((each) => each === given.engine);
    if (given.engine !== undefined && engine === undefined)
      throw new RangeError(`--engine wants one of ${brokers.join(', ')}, got "${given.engine}".`);
    return { ...given, engine: engine as BrokerName | undefined };
  } catch (error) {
    return fail(2, (error as Error).message);
  }
}

function fail(code: number, sentence: string): never {
  console.error(sentence);
  process.exit(code);
}
