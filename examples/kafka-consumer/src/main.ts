// A consumer on Kafka: one order is shipped, one is retried, one is parked and replayed.
import { setTimeout as wait } from 'node:timers/promises';
import { consumer, operations, producer, subscribeEvents } from '@holdfast/events';
import { openKafka } from '@holdfast/kafka';
import { openSqlite } from '@holdfast/sqlite';
import { permanent, transient } from 'holdfast';

interface Order {
  readonly id: string;
  readonly address?: string;
}

const { KAFKA_URL = 'kafka://localhost:9092', STORE_FILE = 'shipping.db', TOPIC = 'orders' } = process.env;

// Retries wait in the store beside the broker, and parked events are kept there.
const store = await openSqlite({ file: STORE_FILE });
const engine = openKafka({ url: KAFKA_URL, group: 'shipping', store });

let isCarrierBusy = true;
let needsAddress = true;

/** Ships an order. What it throws decides what follows: a retry, or a person. */
async function ship({ id, address }: Order): Promise<void> {
  if (id === 'order-2' && isCarrierBusy) {
    isCarrierBusy = false;
    throw transient(new Error('the carrier is busy'));
  }
  if (address === undefined && needsAddress) throw permanent(new Error('the order has no address'));
}

subscribeEvents((notice) => {
  if (notice.type === 'retry') console.log(`${notice.key} is retried: ${notice.error.message}`);
  if (notice.type === 'parked') console.log(`${notice.key} is parked: ${notice.error?.message}`);
  if (notice.type === 'succeeded') console.log(`${notice.key} is shipped, attempt ${notice.attempt}`);
});

const orders = producer<Order>({ engine, topic: TOPIC });
const shipping = consumer<Order>({
  engine,
  topic: TOPIC,
  name: 'shipping@1',
  handler: ({ payload }) => ship(payload),
});
await shipping.start();
await orders.publish({ key: 'order-1', payload: { id: 'order-1', address: 'Main Street 1' } });
await orders.publish({ key: 'order-2', payload: { id: 'order-2', address: 'Main Street 2' } });
await orders.publish({ key: 'order-3', payload: { id: 'order-3' } });

const filter = { topic: TOPIC };
const isSettled = async () =>
  shipping.state().counters.succeeded === 2 && (await engine.triage!.count(filter)) === 1;
while (!(await isSettled())) await wait(50);

// A person looks at what is parked, mends the cause, and lets it happen again.
for (const { count, message } of (await engine.triage!.groups(filter, { limit: 10 })).items)
  console.log(`parked: ${count} with "${message}"`);
needsAddress = false;
const replays = operations({ engine });
const request = { kind: 'replay', filter, rate: 100, canary: 0, canaryMs: 0 } as const;
const { id } = await replays.begin(request, { who: 'ann', why: 'orders without an address are collected' });
const { stage, counts } = await replays.run(id);
console.log(`replay ${stage}: ${counts.succeeded} of ${counts.selected}`);

await shipping.stop();
await engine.close();
await store.close();
