import { Queue, UnrecoverableError, Worker } from 'bullmq';

export async function mails(url: string, name: string, send: (to: string) => Promise<void>) {
  const { hostname: host, port } = new URL(url);
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  const backoff = { type: 'exponential', delay: 10, jitter: 1 };
  const queue = new Queue(name, { connection, defaultJobOptions: { attempts: 6, backoff } });
  const worker = new Worker(
    name,
    async ({ data: { to } }) => {
      if (!to.includes('@')) throw new UnrecoverableError(`${to} is no address`);
      await send(to);
    },
    { connection, concurrency: 10 },
  );
  return {
    enqueue: (to: string) => queue.add('mail', { to }, { jobId: `mail-to-${to}` }),
    failed: () => queue.getFailedCount(),
    stop: () => worker.close().then(() => queue.close()),
  };
}
