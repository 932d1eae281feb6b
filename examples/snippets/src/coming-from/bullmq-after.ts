import { consumer, producer } from '@holdfast/events';
import { openRedis } from '@holdfast/redis';
import { openSqlite } from '@holdfast/sqlite';

export async function mails(
  url: string,
  name: string,
  send: (to: string) => Promise<void>,
  file = 'mails.db',
) {
  // For parked events and the audit log. PostgreSQL, where consumers run on several machines.
  const store = await openSqlite({ file });
  const engine = openRedis({ url, store });
  const worker = consumer<{ to: string }>({
    engine,
    topic: name,
    concurrency: 10,
    effects: 'once', // an id that is published again is not handled again
    policy: { attempts: 6, backoff: { base: '10ms' }, retryOn: 'any', neverOn: [RangeError] },
    handler: async ({ payload: { to } }) => {
      if (!to.includes('@')) throw new RangeError(`${to} is no address`);
      await send(to);
    },
  });
  await worker.start();
  const queue = producer<{ to: string }>({ engine, topic: name });
  return {
    enqueue: (to: string) => queue.publish({ id: `mail-to-${to}`, type: 'mail', payload: { to } }),
    failed: () => store.triage.count({ topic: name }),
    stop: () => worker.stop().then(() => Promise.all([engine.close(), store.close()])),
  };
}
