import { PgBoss } from 'pg-boss';
import { type Contestant, rateOf } from './event-case.ts';
import { Ear, latencyAt } from './idle-latency.ts';
import { type Load, payload } from './through-consumer.ts';

const queue = 'bench';
/** Its best: by the thousand, two at once, settled with one call each. */
const fetchers = 2;
const batchSize = 1000;

export async function pgBoss(url: string, { events, batch }: Load): Promise<Contestant> {
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false, max: 10 });
  boss.on('error', (error: unknown) => {
    throw error;
  });
  await boss.start();
  await boss.createQueue(queue);

  async function work(done: { count: number }): Promise<void> {
    while (done.count < events) {
      const jobs = await boss.fetch(queue, { batchSize });
      done.count += jobs.length;
      if (jobs.length > 0) {
        await boss.complete(
          queue,
          jobs.map(({ id }) => id),
        );
      }
    }
  }

  return {
    round: () =>
      rateOf(events, async () => {
        for (let at = 0; at < events; at += batch) {
          await boss.insert(
            queue,
            Array.from({ length: batch }, () => ({ data: { payload } })),
          );
        }
        const done = { count: 0 };
        await Promise.all(Array.from({ length: fetchers }, () => work(done)));
      }),
    close: () => boss.stop({ graceful: false }),
  };
}

/** Its best: a NOTIFY with each job wakes a worker, which otherwise looks every half second. */
export async function pgBossLatency(url: string, share: number): Promise<Contestant> {
  const boss = new PgBoss({
    connectionString: url,
    supervise: false,
    schedule: false,
    useListenNotify: true,
  });
  boss.on('error', (error: unknown) => {
    throw error;
  });
  await boss.start();
  const idle = 'idle';
  await boss.createQueue(idle, { notify: true });
  const ear = new Ear();
  await boss.work(idle, { pollingIntervalSeconds: 0.5 }, async () => ear.hear());
  return {
    round: () => latencyAt(share, () => ear.timed(() => boss.send(idle, { payload }))),
    close: () => boss.stop({ graceful: false }),
  };
}
