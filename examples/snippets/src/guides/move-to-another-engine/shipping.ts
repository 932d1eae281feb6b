import type { Broker, Engine } from '@holdfast/contracts';
import { consumer, producer } from '@holdfast/events';
import { openKafka } from '@holdfast/kafka';
import { openNats } from '@holdfast/nats';
import { openPostgres } from '@holdfast/postgres';
import { openRabbitmq } from '@holdfast/rabbitmq';
import { openRedis } from '@holdfast/redis';
import { openSqlite } from '@holdfast/sqlite';
import { openSqs } from '@holdfast/sqs';

/** The only function that knows where the events are. You need one of these lines, and its import. */
async function openEngine(url: string): Promise<Engine & { readonly broker: Broker }> {
  if (url.endsWith('.db')) return openSqlite({ file: url });
  if (url.startsWith('postgres')) return openPostgres({ url });
  // A broker has a store beside it. PostgreSQL, where consumers run on more than one machine.
  const store = await openSqlite({ file: 'store.db' });
  if (url.startsWith('redis')) return openRedis({ url, store });
  if (url.startsWith('nats')) return openNats({ url, store });
  if (url.startsWith('amqp')) return openRabbitmq({ url, store });
  if (url.startsWith('kafka')) return openKafka({ url, group: 'shipping', store });
  return openSqs({ endpoint: url, region: 'eu-central-1', store });
}

const [url = 'orders.db', ...orders] = process.argv.slice(2);
const engine = await openEngine(url);
const shipping = consumer({
  engine,
  topic: 'orders',
  name: 'shipping@1',
  ordering: 'key',
  effects: 'once',
  handler: ({ key }) => {
    if (key === 'order-3' && !process.env.ADDRESS) throw new TypeError('order-3 has no address');
    console.log(`${key} shipped`);
  },
});
await shipping.start();
console.log(`shipping reads from ${engine.name}`);
process.once('SIGINT', () => shipping.stop().then(() => engine.close()));

const publisher = producer({ engine, topic: 'orders', ordering: 'key' });
for (const order of orders) await publisher.publish({ type: 'placed', key: order, payload: {} });
