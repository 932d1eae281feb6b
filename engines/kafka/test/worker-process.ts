import { openKafka } from '@holdfast/kafka';
import { quick } from './kafka-harness.ts';

/** A worker that acknowledges events one by one, and prints the id of each before and after. It runs until it is killed. */
const [url, group, topic] = process.argv.slice(2);
const { broker } = openKafka({ ...quick, url: url!, group: group!, partitions: 2 });

for (;;) {
  const { deliveries } = await broker.lease(topic!, {
    owner: String(process.pid),
    limit: 10,
    leaseMs: 60_000,
  });
  for (const { id, lease } of deliveries) {
    console.log(`begun ${id}`);
    const [result] = await broker.settle([{ lease, kind: 'ack' }]);
    if (result!.took) console.log(`done ${id}`);
  }
}
