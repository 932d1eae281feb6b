import { consumer, producer } from '@holdfast/events';
import { openPostgres } from '@holdfast/postgres';

export async function mails(url: string, name: string, send: (to: string) => Promise<void>) {
  const engine = await openPostgres({ url });
  const worker = consumer<{ to: string }>({
    engine,
    topic: name,
    policy: { attempts: 3, backoff: { base: '10ms' }, retryOn: 'any' },
    handler: ({ payload: { to } }) => send(to),
  });
  await worker.start();
  const queue = producer<{ to: string }>({ engine, topic: name });
  return {
    enqueue: (to: string) => queue.publish({ type: 'mail', payload: { to } }),
    failed: () => engine.triage.count({ topic: name }),
    stop: () => worker.stop().then(() => engine.close()),
  };
}
