import { carrierEngine } from '@holdfast/contracts/carrier';
import { memoryEngine } from '@holdfast/contracts/memory';
import { readRabbitmqOptions } from '../src/open-rabbitmq.ts';
import { rabbitmqCarrier } from '../src/rabbitmq-carrier.ts';

/**
 * A worker that prints what it does. It runs until it is killed.
 * `loop`: acknowledges events one by one. `ordered`: the same with key order, and each takes 20 ms. `holds`: leases one event, and settles it when it
 * is told to on its input. `retries`: retries one event, and never gets to the acknowledgement.
 */
const [url, topic, mode] = process.argv.slice(2) as [string, string, string];
const store = mode === 'ordered' ? memoryEngine() : undefined;
const { carrier: settings, rest } = readRabbitmqOptions({ url, heartbeat: '1s', store });
const carrier = rabbitmqCarrier(settings);
const forever = new Promise<never>(() => {});
const { broker } = carrierEngine(
  mode === 'retries'
    ? {
        ...carrier,
        done() {
          console.log('sent');
          return forever;
        },
      }
    : carrier,
  { ...rest, durability: 'power' },
);
if (store) await broker.declare(topic, { ordering: 'key' });

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

let isReady = false;
for (;;) {
  const limit = mode === 'loop' || mode === 'ordered' ? 10 : 1;
  const { deliveries } = await broker.lease(topic, { owner: String(process.pid), limit, leaseMs: 60_000 });
  if (!isReady) console.log('ready');
  isReady = true;
  for (const { id, lease } of deliveries) {
    console.log(`begun ${id}`);
    if (mode === 'ordered') await pause(20);
    if (mode === 'holds') await new Promise((resolve) => process.stdin.once('data', resolve));
    const error = { type: 'Error', message: 'no', fingerprint: 'f' };
    const [result] = await broker.settle([
      mode === 'retries' ? { lease, kind: 'retry', delayMs: 0, error, story: [] } : { lease, kind: 'ack' },
    ]);
    console.log(result!.took ? `done ${id}` : `${result!.because} ${id}`);
  }
}
