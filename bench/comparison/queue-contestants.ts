import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Engine } from '@holdfast/contracts';
import { consumer, producer } from '@holdfast/events';
import { openPostgres } from '@holdfast/postgres';
import { openRedis } from '@holdfast/redis';
import { openSqlite } from '@holdfast/sqlite';
import { Queue, Worker } from 'bullmq';
import { policy } from 'holdfast';
import { PgBoss } from 'pg-boss';
import type { Servers } from './claim.ts';

export type QueueName = 'postgres' | 'redis' | 'bullmq' | 'pg-boss';

/** What a handler gets. */
export interface Job {
  readonly n: number;
  /** Counted from 1. */
  readonly attempt: number;
  /** Calls a dependency, in the way that the library has for that. */
  call(dependency: () => Promise<void>): Promise<void>;
}

export interface OpenQueue {
  /** Publishes jobs with these numbers, in this order, and under one key if the queue keeps order. */
  publish(numbers: readonly number[]): Promise<void>;
  start(handler: (job: Job) => Promise<void>): Promise<void>;
  /** How many jobs have failed for good. */
  failed(): Promise<number>;
  /** All that is stored about the jobs that have failed for good. */
  notes(): Promise<string>;
  stop(): Promise<unknown>;
}

/** Three attempts. `isOrdered`: in the way that keeps the order of a key, if the library has one. */
export type OpenContestant = (servers: Servers, isOrdered: boolean) => Promise<OpenQueue>;

const ATTEMPTS = 3;
const WAIT_MS = 100;
const KEY = 'order-17';

/** Few, because all trials share one server. */
const connectionsMax = 4;

export const queues: Readonly<Record<QueueName, OpenContestant>> = {
  async postgres({ postgresUrl }, isOrdered) {
    const engine = await openPostgres({ url: postgresUrl, connectionsMax });
    return ours(engine, engine, isOrdered, () => engine.close());
  },

  async redis({ redisUrl }, isOrdered) {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-comparison-'));
    const store = await openSqlite({ file: path.join(folder, 'parked.db') });
    const engine = openRedis({ url: redisUrl, store });
    return ours(engine, store, isOrdered, async () => {
      await engine.close();
      await store.close();
      await rm(folder, { recursive: true });
    });
  },

  async bullmq({ redisUrl }, isOrdered) {
    const name = randomUUID();
    const { hostname: host, port } = new URL(redisUrl);
    const connection = { host, port: Number(port), maxRetriesPerRequest: null };
    const backoff = { type: 'fixed', delay: WAIT_MS };
    const queue = new Queue(name, { connection, defaultJobOptions: { attempts: ATTEMPTS, backoff } });
    // Groups, which keep the order of a key, are in BullMQ Pro. One job at a time is what is left.
    if (isOrdered) await queue.setGlobalConcurrency(1);
    let worker: Worker | undefined;
    return {
      publish: async (numbers) =>
        void (await queue.addBulk(numbers.map((n) => ({ name: 'job', data: { n } })))),
      async start(handler) {
        worker = new Worker(
          name,
          ({ data: { n }, attemptsMade }) => handler({ n, attempt: attemptsMade + 1, call: plainly }),
          { connection, concurrency: isOrdered ? 1 : 10 },
        );
        await worker.waitUntilReady();
      },
      failed: () => queue.getFailedCount(),
      notes: async () =>
        JSON.stringify(
          (await queue.getFailed()).map(({ failedReason, stacktrace }) => [failedReason, stacktrace]),
        ),
      async stop() {
        await worker?.close();
        await queue.obliterate({ force: true });
        await queue.close();
      },
    };
  },

  async 'pg-boss'({ postgresUrl }, isOrdered) {
    const [name, dead] = [randomUUID(), randomUUID()];
    const boss = new PgBoss({
      connectionString: postgresUrl,
      max: connectionsMax,
      supervise: false,
      schedule: false,
    });
    boss.on('error', () => {});
    await boss.start();
    await boss.createQueue(dead);
    await boss.createQueue(name, {
      retryLimit: ATTEMPTS - 1,
      retryDelay: 0,
      deadLetter: dead,
      ...(isOrdered && { policy: 'key_strict_fifo' }),
    });
    return {
      async publish(numbers) {
        for (const n of numbers) await boss.send(name, { n }, isOrdered ? { singletonKey: KEY } : {});
      },
      async start(handler) {
        const options = { pollingIntervalSeconds: 0.5, localConcurrency: 10 };
        await boss.work<{ n: number }>(name, options, async ([job]) => {
          if (job) await handler({ n: job.data.n, attempt: job.retryCount + 1, call: plainly });
        });
      },
      failed: async () => (await boss.findJobs(dead)).length,
      notes: async () => JSON.stringify([await boss.findJobs(name), await boss.findJobs(dead)]),
      stop: () => boss.stop({ graceful: false }),
    };
  },
};

/** `store` has the parked events. */
async function ours(
  engine: Parameters<typeof consumer>[0]['engine'] & Engine<never>,
  store: Pick<Required<Engine<never>>, 'triage'>,
  isOrdered: boolean,
  close: () => Promise<unknown>,
): Promise<OpenQueue> {
  const topic = randomUUID();
  const dependency = policy({ name: topic, attempts: 1, retryOn: 'any' });
  const jobs = producer<{ n: number }>({ engine, topic, ordering: isOrdered ? 'key' : 'none' });
  let worker: { stop(): Promise<unknown> } | undefined;
  return {
    publish: async (numbers) =>
      void (await jobs.publishAll(numbers.map((n) => ({ payload: { n }, ...(isOrdered && { key: KEY }) })))),
    async start(handler) {
      const made = consumer<{ n: number }>({
        engine,
        topic,
        dependsOn: [topic],
        policy: {
          attempts: ATTEMPTS,
          retryOn: 'any',
          backoff: { base: WAIT_MS, cap: WAIT_MS, jitter: 'none' },
        },
        handler: ({ payload: { n }, attempt }) =>
          handler({ n, attempt, call: (operation) => dependency.run(operation) }),
      });
      worker = made;
      await made.start();
    },
    failed: () => store.triage.count({ topic }),
    async notes() {
      const { items } = await store.triage.list({ topic }, { limit: 10 });
      const parked = await Promise.all(items.map(({ id }) => store.triage.get(id)));
      return JSON.stringify(parked.map((each) => each?.diagnosis));
    },
    async stop() {
      await worker?.stop();
      await close();
    },
  };
}

function plainly(dependency: () => Promise<void>): Promise<void> {
  return dependency();
}
