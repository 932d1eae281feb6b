import { setTimeout as pause } from 'node:timers/promises';
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import { type Contestant, rateOf } from './event-case.ts';
import { Ear, latencyAt } from './idle-latency.ts';
import { type Load, payload } from './through-consumer.ts';

const silent = new Logger(() => () => {});

/** Its best: jobs are locked by the five hundred and completed together. */
export async function graphileWorker(url: string, { events, batch }: Load): Promise<Contestant> {
  const utils = await makeWorkerUtils({ connectionString: url, logger: silent });
  await utils.migrate();
  return {
    async round() {
      let done = 0;
      const handle = async () => {
        done += 1;
      };
      let stop: () => Promise<void> = async () => {};
      const rate = await rateOf(events, async () => {
        for (let at = 0; at < events; at += batch) {
          await utils.addJobs(
            Array.from({ length: batch }, () => ({ identifier: 'bench', payload: { payload } })),
          );
        }
        const runner = await run({
          taskList: { bench: handle },
          preset: {
            worker: {
              connectionString: url,
              logger: silent,
              concurrentJobs: 24,
              maxPoolSize: 10,
              localQueue: { size: 500 },
              completeJobBatchDelay: 0,
              failJobBatchDelay: 0,
            },
          },
        });
        stop = () => runner.stop();
        while (done < events) await pause(1);
      });
      await stop();
      return rate;
    },
    close: async () => utils.release(),
  };
}

/** As it comes: a NOTIFY with each job wakes a worker. */
export async function graphileWorkerLatency(url: string, share: number): Promise<Contestant> {
  const utils = await makeWorkerUtils({ connectionString: url, logger: silent });
  await utils.migrate();
  const ear = new Ear();
  const runner = await run({
    taskList: { idle: async () => ear.hear() },
    preset: { worker: { connectionString: url, logger: silent } },
  });
  return {
    round: () => latencyAt(share, () => ear.timed(() => utils.addJob('idle', { payload }))),
    async close() {
      await runner.stop();
      await utils.release();
    },
  };
}
