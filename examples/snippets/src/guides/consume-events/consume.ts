import { setTimeout as pause } from 'node:timers/promises';
import { commit, consumer, producer } from '@holdfast/events';
import { openSqlite } from '@holdfast/sqlite';

const engine = await openSqlite({ file: 'orders.db' });
await engine.transaction((database) =>
  database.exec('CREATE TABLE IF NOT EXISTS paid (id TEXT, total REAL)'),
);

const orders = consumer({
  engine,
  topic: 'orders',
  name: 'paid-orders@1',
  policy: { backoff: { base: '10ms' } },
  handler: ({ key = '', payload, attempt }) => {
    const { total } = payload as { total: number };
    // Stands for a bank that is away for a moment: a temporary error, so the event is handled again.
    if (key === 'order-2' && attempt < 3) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
    // Nobody knows how to repeat this one: the event is parked, for a person.
    if (total < 0) throw new RangeError(`a total of ${total}`);
    console.log(`${key} paid ${total}, attempt ${attempt}`);
    // Runs in the transaction that settles the event: both happen, or neither.
    return commit((database) => database.prepare('INSERT INTO paid VALUES (?, ?)').run(key, total));
  },
});
await orders.start();

const placed = producer<{ total: number }>({ engine, topic: 'orders' });
for (const [index, total] of [40, 25, -3].entries()) {
  await placed.publish({ type: 'placed', key: `order-${index + 1}`, payload: { total } });
}
while (orders.state().counters.succeeded < 2 || orders.state().counters.parked < 1) await pause(10);
const { succeeded, successAfterRetry, parked } = orders.state().counters;
console.log(`${succeeded} paid, ${successAfterRetry} of them after a retry, ${parked} parked`);
await orders.stop();
await engine.close();
