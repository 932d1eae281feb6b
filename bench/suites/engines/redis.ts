import { openRedis } from '@holdfast/redis';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import type { BrokerBench } from './broker-bench.ts';
import { concurrency, type Drain, handleAll, payload, until } from './drain.ts';

const readMax = 500;

export const redisBench: BrokerBench = {
  service: 'redis',
  events: 100_000,
  open: (url, store) => openRedis({ url, ...(store && { store }) }),
  bare,
  peers: { BullMQ: bullmq },
};

/** A stream and a group: read, handled, acknowledged and deleted 500 at a time. */
async function bare(url: string, topic: string): Promise<Drain> {
  const client = new Redis(url);
  await client.xgroup('CREATE', topic, 'bench', '0', 'MKSTREAM');
  return {
    async fill(count) {
      const pipeline = client.pipeline();
      for (let index = 0; index < count; index++) pipeline.xadd(topic, '*', 'payload', payload);
      await pipeline.exec();
    },
    async drain(count, handle) {
      for (let done = 0; done < count; ) {
        const read = await client.xreadgroup(
          'GROUP',
          'bench',
          'one',
          'COUNT',
          readMax,
          'STREAMS',
          topic,
          '>',
        );
        const [[, entries]] = read as [[string, [string, string[]][]]];
        await handleAll(entries, handle);
        const ids = entries.map(([id]) => id);
        await client
          .pipeline()
          .xack(topic, 'bench', ...ids)
          .xdel(topic, ...ids)
          .exec();
        done += entries.length;
      }
    },
    close: async () => client.disconnect(),
  };
}

/** One worker: more workers in a process are slower. Jobs are removed when they are done. */
async function bullmq(url: string, topic: string): Promise<Drain> {
  const { hostname: host, port } = new URL(url);
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  const queue = new Queue(topic, { connection, defaultJobOptions: { removeOnComplete: true } });
  await queue.waitUntilReady();
  let worker: Worker | undefined;
  return {
    async fill(count) {
      for (let at = 0; at < count; at += 1000)
        await queue.addBulk(Array.from({ length: 1000 }, () => ({ name: topic, data: { payload } })));
    },
    async drain(count, handle) {
      let done = 0;
      worker = new Worker(topic, handle, { connection, concurrency });
      worker.on('completed', () => {
        done += 1;
      });
      await until(() => done >= count);
    },
    rest: async () => worker?.close(),
    close: () => queue.close(),
  };
}
