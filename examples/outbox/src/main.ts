// An order and its mail are one transaction. The mail is sent by a consumer, also after a crash.
import { setTimeout as wait } from 'node:timers/promises';
import { consumer } from '@holdfast/events';
import { openSqlite } from '@holdfast/sqlite';
import { createTables, type Mail, placeOrder, topic } from './place-order.ts';

const { STORE_FILE = 'shop.db', CRASH } = process.env;
const engine = await openSqlite({ file: STORE_FILE });
await createTables(engine);
const die = () => process.kill(process.pid, 'SIGKILL');
const countOrders = () =>
  engine.transaction((database) => Number(database.prepare('SELECT count(*) AS n FROM orders').get()?.n));

// Orders of several runs on one file have different names.
const number = (await countOrders()) + 1;
await placeOrder(engine, { id: `order-${number}`, item: 'a lamp' });
console.log(`order-${number} is placed`);
if (CRASH === 'after commit') die();

await placeOrder(engine, { id: `order-${number + 1}`, item: 'a chair' }, () => {
  if (CRASH === 'before commit') die();
  throw new Error('the chair is sold out');
}).catch((error: Error) => console.log(`order-${number + 1} is not placed: ${error.message}`));

const sending = consumer<Mail>({
  engine,
  topic,
  name: 'send-mail@1',
  // The mail server gets the idempotencyKey of the event, so that a repeated request sends no second mail.
  handler: ({ payload }) => console.log(`mail for ${payload.order} is sent`),
});
await sending.start();
while (await isBusy()) await wait(20);
await sending.stop();
console.log(`orders: ${await countOrders()}`);
await engine.close();

async function isBusy(): Promise<boolean> {
  const { ready, delayed, leased } = await sending.lag();
  return ready + delayed + leased > 0;
}
