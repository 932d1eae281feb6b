// Orders flow, the payment service fails now and then, and some events are parked. `npm start -- orders` runs it.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { maintenance } from '@holdfast/events';
import { createFetch } from '@holdfast/http';
import { openSqlite } from '@holdfast/sqlite';
import { policies, policy, systemRandom } from 'holdfast';
import { createView, projectOrders, topic } from './order-view.ts';
import { startPaymentService } from './payment-service.ts';
import { canvas, picture, type Scene } from './screen.ts';
import { openShop } from './shop.ts';

const values = asked();
const isOnce = values.once || !process.stdout.isTTY;
const ordersMax = isOnce ? Number(values.orders) : Infinity;

const engine = await openStore(values.store);

// Up for some seconds, then away for a few; in between it is slow, and one connection in fifteen breaks.
const flap = isOnce ? ({ up: '1500ms', down: '1s' } as const) : ({ up: '12s', down: '4s' } as const);
const payment = await startPaymentService(
  {
    faults: [
      { kind: 'refuse', cut: true, flap },
      { kind: 'latency', delay: { distribution: 'lognormal', median: '15ms', sigma: 1, cap: '500ms' } },
      { kind: 'reset', rate: 0.07 },
    ],
  },
  isOnce ? 60_000 : 20_000,
);
const pay = createFetch({
  policy: policy({ name: 'payment', patience: '2s', breaker: { openFor: ['500ms', '2s'] } }),
});
const projection = projectOrders(engine, pay, payment.url);
const upkeep = maintenance({ engine, every: '2s' });
// Orders of two runs on one file must not have the same name.
const run = Math.floor(systemRandom() * 36 ** 4).toString(36);
const shop = openShop(engine, run, systemRandom);
const draw = canvas(
  (text) => process.stdout.write(text),
  () => process.stdout.columns || 80,
);

async function look(): Promise<Scene> {
  const rows = await engine.transaction((database) =>
    database.prepare('SELECT status, count(*) AS count FROM order_view GROUP BY status').all(),
  );
  const breaker = policies().find(({ name }) => name === 'payment')?.targets[0]?.breaker ?? 'closed';
  return {
    file: values.store,
    sold: shop.sold,
    consumer: projection.state(),
    lag: await projection.lag(),
    parked: await engine.triage.count({ topic }),
    payment: breaker === 'closed' ? 'answers' : `is away (breaker ${breaker})`,
    charges: payment.charges,
    view: Object.fromEntries(rows.map(({ status, count }) => [String(status), Number(count)])),
  };
}

const leaving = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => leaving.abort());

await projection.start();
upkeep.start();
console.log(
  `Orders are kept in ${values.store}. ${isOnce ? '' : 'Ctrl-C lets what is in hand finish, and ends.'}\n`,
);

for (let beat = 0; !leaving.signal.aborted; beat++) {
  if (shop.sold < ordersMax) await shop.sell();
  const isOver = shop.sold >= ordersMax && (await isQuiet());
  if (isOver) break;
  if (!isOnce && beat % 5 === 0) draw(picture(await look()));
  if (isOnce && beat % 50 === 0)
    console.log(
      picture(await look())
        .slice(0, 6)
        .join('\n'),
      '\n',
    );
  await wait(isOnce ? 10 : 50, undefined, { signal: leaving.signal }).catch(() => {});
}

await projection.stop();
await upkeep.stop();
const last = await look();
console.log(
  `\n${leaving.signal.aborted ? 'Drained: nothing is in hand, and what was not done waits in the store.' : 'All is done or parked.'}\n`,
);
console.log(picture(last).slice(0, 6).join('\n'));
await pay.close();
await payment.close();
await engine.close();

async function isQuiet(): Promise<boolean> {
  // What is behind a parked event stays there.
  const { ready, delayed, leased, suspect } = await projection.lag();
  return ready + delayed + leased + suspect === 0;
}

async function openStore(file: string) {
  try {
    mkdirSync(path.dirname(file), { recursive: true });
    const engine = await openSqlite({ file });
    await engine.transaction(createView);
    return engine;
  } catch (error) {
    console.error(
      `Orders cannot be kept in ${file}: ${(error as Error).message}. Say another file with --store.`,
    );
    process.exit(3);
  }
}

function asked() {
  try {
    const { values } = parseArgs({
      options: {
        once: { type: 'boolean', default: false },
        orders: { type: 'string', default: '200' },
        store: { type: 'string', default: path.join('.holdfast', 'orders.db') },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) {
      console.log('npm start -- orders [--once] [--orders <count>] [--store <file>]');
      process.exit(0);
    }
    if (!(Number(values.orders) > 0))
      throw new RangeError(`--orders wants a number above zero, got "${values.orders}".`);
    return values;
  } catch (error) {
    console.error((error as Error).message);
    process.exit(2);
  }
}
