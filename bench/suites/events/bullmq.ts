import { setTimeout as pause } from 'node:timers/promises';
import { Queue, Worker } from 'bullmq';
import { type Contestant, rateOf } from './event-case.ts';
import { type Load, payload } from './through-consumer.ts';

const name = 'bench';

/** One worker with a concurrency of 100: more workers in a process are slower. Jobs are removed when they are done. */
export async function bullmq(url: string, { events, batch }: Load): Promise<Contestant> {
  const { hostname: host, port } = new URL(url);
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  const queue = new Queue(name, { connection, defaultJobOptions: { removeOnComplete: true } });
  await queue.waitUntilReady();
  return {
    async round() {
      let done = 0;
      const worker = new Worker(
        name,
        async () => {
          done += 1;
        },
        { connection, concurrency: 100, autorun: false },
      );
      await worker.waitUntilReady();
      const rate = await rateOf(events, async () => {
        for (let at = 0; at < events; at += batch) {
          await queue.addBulk(Array.from({ length: batch }, () => ({ name, data: { payload } })));
        }
        void worker.run();
        while (done < events) await pause(1);
      });
      await worker.close();
      return rate;
    },
    close: () => queue.close(),
  };
}
