import { assemblies, assembly } from '@holdfast/assembly';
import { openSqlite } from '@holdfast/sqlite';

const placeOrder = assembly(
  'place-order',
  { version: 1, patience: '10m', plan: ['charge', 'reserve', 'ship'], onFailure: 'undo' },
  async (step, { id, item }: { id: string; item: string }) => {
    // Stand for three services. Each call of one is a step, with what takes it back beside it.
    await step.run('charge', () => console.log(`charge ${id}`), {
      undo: () => console.log(`refund ${id}`),
    });
    await step.run(
      'reserve',
      ({ attempt }) => {
        if (item === 'piano') throw new RangeError('no piano is left');
        if (attempt < 3) throw Object.assign(new Error('stock is away'), { code: 'ECONNRESET' });
        console.log(`reserve a ${item}, attempt ${attempt}`);
      },
      { policy: { backoff: { base: '10ms' } } },
    );
    return step.run('ship', () => {
      if (process.env.CRASH) process.exit(1); // stands for a machine that dies
      return `parcel of ${id}`;
    });
  },
);

const [id = 'order-1', item = 'lamp'] = process.argv.slice(2);
const engine = await openSqlite({ file: 'orders.db' });
const work = assemblies({ engine, programs: [placeOrder], lease: '2s' });
await work.run();
// The same id is the same work: a second start finds the first.
const order = await work.start(placeOrder, { id, item }, { id });
console.log(await order.result().catch((error: Error) => error.message));
await work.stop();
await engine.close();
