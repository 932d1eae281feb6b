import path from 'node:path';
import { assemblies, assembly } from '@holdfast/assembly';
import { openSqlite } from '@holdfast/sqlite';

/** A program of several steps that a test stops while it waits, and starts again. */
const placeOrder = assembly('place-order', async (step, id: string) => {
  await step.run('charge', () => console.log('charging'));
  await step.sleep('cooling-off', '1s');
  return `${id} is shipped`;
});

const file = path.join(process.argv[2]!, 'orders.db');
const work = assemblies({ engine: await openSqlite({ file }), programs: [placeOrder] });
process.once('SIGINT', () => work.stop());
await work.run();
const order = await work.start(placeOrder, 'order-17', { id: 'order-17' });
console.log(await order.result().catch((error: Error) => error.message));
await work.stop();
