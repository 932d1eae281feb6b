// Orders of several steps, with four services that fail. `node examples/orders/src/place-orders.ts` runs it.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { assemblies } from '@holdfast/assembly';
import { createFetch } from '@holdfast/http';
import { openSqlite } from '@holdfast/sqlite';
import { policy, systemRandom } from 'holdfast';
import { soldOut, startFlakyServices } from './assembly/flaky-services.ts';
import { createPlaced, placeOrderProgram } from './assembly/place-order.ts';

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: '.holdfast/assemblies.db' },
    orders: { type: 'string', default: '5' },
  },
});
mkdirSync(path.dirname(path.resolve(values.store)), { recursive: true });
const engine = await openSqlite({ file: values.store });
await engine.transaction(createPlaced);
const services = await startFlakyServices({ faults: [{ kind: 'reset', rate: 0.05 }] }, systemRandom);
// The step retries, so the call does not: who waits longer decides.
const send = createFetch({ idempotency: 'derive', policy: policy({ name: 'services', attempts: 1 }) });
const placeOrder = placeOrderProgram(send, services.url);
const work = assemblies({ engine, programs: [placeOrder] });
await work.run();

async function follow(number: number): Promise<void> {
  const order = await work.start(
    placeOrder,
    { order: `order ${number}`, item: number % 5 === 4 ? soldOut : 'a book' },
    { patience: '30s' },
  );
  for await (const { text } of order.follow()) console.log(`order ${number}: ${text}`);
}

await Promise.all(Array.from({ length: Number(values.orders) }, (_, number) => follow(number)));
console.log(`\n${JSON.stringify(services.deeds, undefined, 2)}`);
await work.stop();
await services.close();
await engine.close();
