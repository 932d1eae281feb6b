import { type Consumer, commit, consumer, producer } from '@holdfast/events';
import { openSqlite } from '@holdfast/sqlite';

export async function handleOrders(file: string): Promise<Consumer> {
  const engine = await openSqlite({ file });
  await engine.transaction((database) =>
    database.exec('CREATE TABLE IF NOT EXISTS paid (id TEXT, total REAL)'),
  );

  const orders = producer<{ total: number }>({ engine, topic: 'orders', ordering: 'key' });
  await orders.publish({ type: 'placed', key: 'order-17', payload: { total: 40 }, patience: '10m' });

  const handled = consumer({
    engine,
    topic: 'orders',
    name: 'paid-orders@1',
    handler: ({ key = '', payload }) => {
      const { total } = payload as { total: number };
      // Runs inside the transaction that settles the event: both happen, or neither.
      return commit((database) => database.prepare('INSERT INTO paid VALUES (?, ?)').run(key, total));
    },
  });
  await handled.start();
  return handled;
}
