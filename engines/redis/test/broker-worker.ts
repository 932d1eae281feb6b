import { openRedis } from '../src/index.ts';

/**
 * Handles events until it is killed: writes an effect into a list, acknowledges with a mark, and notes what it has settled. It
 * extends no lease, so on a busy machine another worker may have the event meanwhile.
 */
const [url = '', prefix = '', owner = ''] = process.argv.slice(2);
const { broker, ledger, client } = openRedis({ url, prefix });
const handler = 'view@1';

for (let suspects = false; ; suspects = !suspects) {
  const { deliveries } = await broker.lease('jobs', { owner, limit: 20, leaseMs: 300, runMax: 5, suspects });
  for (const { lease, id, key, payload } of deliveries) {
    const [isDone] = await ledger.isMarked([{ handler, eventId: id }]);
    if (!isDone) await client.rpush(`${prefix}effects`, `${key} ${payload}`);
    const [settled] = await broker.settle([{ lease, kind: 'ack', marks: [handler] }]);
    if (settled?.took) await client.rpush(`${prefix}settled`, id);
  }
}
