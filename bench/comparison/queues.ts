import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { commit, consumer, producer } from '@holdfast/events';
import { openPostgres, type PostgresTransaction } from '@holdfast/postgres';
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import type { Claim, Servers, Theme, Trial } from './claim.ts';
import { queues as contestants, type OpenQueue, type QueueName } from './queue-contestants.ts';

/** Longer than three attempts take anywhere. pg-boss looks for work every half second at most. */
const OUTAGE_MS = 4000;
const ENOUGH_MS = 20_000;

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + ENOUGH_MS;
  while (!(await isTrue())) {
    if (performance.now() > end) throw new Error(`The trial did not end within ${ENOUGH_MS} ms.`);
    await pause(20);
  }
}

function trialsOf(
  isOrdered: boolean,
  scenario: (queue: OpenQueue) => Promise<boolean>,
): Readonly<Record<QueueName, Trial>> {
  const trialOf = (name: QueueName) => async (servers: Servers) => {
    const queue = await contestants[name](servers, isOrdered);
    try {
      return await scenario(queue);
    } finally {
      await queue.stop();
    }
  };
  return {
    postgres: trialOf('postgres'),
    redis: trialOf('redis'),
    bullmq: trialOf('bullmq'),
    'pg-boss': trialOf('pg-boss'),
  };
}

/** Runs a handler that writes a row in its transaction, throws the first time, and succeeds the second time. */
async function rowsAfterThrow(
  { postgresUrl }: Servers,
  handle: (insert: string, done: () => void) => Promise<() => Promise<unknown>>,
): Promise<boolean> {
  const database = new pg.Client(postgresUrl);
  await database.connect();
  const table = `effect_${randomUUID().replaceAll('-', '')}`;
  await database.query(`CREATE TABLE ${table} (attempt int)`);
  let isDone = false;
  const stop = await handle(`INSERT INTO ${table} VALUES ($1)`, () => {
    isDone = true;
  });
  const rows = async () =>
    (await database.query(`SELECT attempt FROM ${table}`)).rows as { attempt: number }[];
  try {
    // The row of the second attempt is seen once its transaction has been committed.
    await until(async () => isDone && (await rows()).some(({ attempt }) => attempt === 2));
    return (await rows()).length === 1;
  } finally {
    await stop();
    await database.end();
  }
}

const claims: readonly Claim<QueueName>[] = [
  {
    id: 'outage-fails-none',
    sentence: 'An outage of what the handler calls leaves no job failed for good',
    how: 'Ten jobs, three attempts each with waits of 100 ms (pg-boss: none), and an outage of 4 s. Holdfast has `dependsOn`: it stops taking jobs while the breaker of the dependency is open. Elsewhere you give a job more attempts, or pause the queue yourself.',
    trials: trialsOf(false, async (queue) => {
      const numbers = Array.from({ length: 10 }, (_, n) => n);
      let done = 0;
      await queue.publish(numbers);
      const endsAt = performance.now() + OUTAGE_MS;
      await queue.start(async ({ call }) => {
        await call(async () => {
          if (performance.now() < endsAt) throw Object.assign(new Error('down'), { code: 'ECONNREFUSED' });
        });
        done++;
      });
      await until(async () => done + (await queue.failed()) === numbers.length);
      return done === numbers.length;
    }),
  },
  {
    id: 'order-of-a-key',
    sentence: 'Jobs of one key stay in order when the first is retried',
    how: 'Three jobs of one key; the first fails once. pg-boss has the queue policy `key_strict_fifo`. BullMQ handles one job at a time here; its groups are in BullMQ Pro.',
    trials: trialsOf(true, async (queue) => {
      const done: number[] = [];
      await queue.publish([1, 2, 3]);
      await queue.start(async ({ n, attempt }) => {
        if (n === 1 && attempt === 1) throw new Error('busy');
        done.push(n);
      });
      await until(() => done.length === 3);
      return done.join() === '1,2,3';
    }),
  },
  {
    id: 'error-of-every-attempt',
    sentence: 'A job that has failed for good keeps the error of every attempt',
    how: 'Each of three attempts fails with another message. Good is: all three are stored with the job.',
    trials: trialsOf(false, async (queue) => {
      await queue.publish([1]);
      await queue.start(async ({ attempt }) => {
        throw new Error(`refusal number ${attempt}`);
      });
      await until(async () => (await queue.failed()) === 1);
      const notes = await queue.notes();
      return [1, 2, 3].every((attempt) => notes.includes(`refusal number ${attempt}`));
    }),
  },
  {
    id: 'one-transaction',
    sentence: 'What a handler wrote to your database is rolled back with its job when it throws',
    how: 'The handler writes a row and throws, and succeeds the second time. Good is: one row. Holdfast has `commit`, pg-boss has `transactional`: both commit the effect with the acknowledgement. A death between the two is not tried here.',
    trials: {
      postgres: (servers) =>
        rowsAfterThrow(servers, async (insert, done) => {
          const engine = await openPostgres({ url: servers.postgresUrl, connectionsMax: 4 });
          const topic = randomUUID();
          const worker = consumer({
            engine,
            topic,
            policy: { attempts: 3, retryOn: 'any', backoff: { base: '10ms' } },
            handler: ({ attempt }) =>
              commit(async (tx: PostgresTransaction) => {
                await tx.query(insert, [attempt]);
                if (attempt === 1) throw new Error('busy');
                done();
              }),
          });
          await worker.start();
          await producer({ engine, topic }).publish({ payload: {} });
          return () => worker.stop().then(() => engine.close());
        }),
      redis: 'a handler cannot take part in a script of Redis',
      bullmq: 'a handler gets no transaction, neither on Redis nor on PostgreSQL',
      'pg-boss': (servers) =>
        rowsAfterThrow(servers, async (insert, done) => {
          const boss = new PgBoss({
            connectionString: servers.postgresUrl,
            max: 4,
            supervise: false,
            schedule: false,
          });
          boss.on('error', () => {});
          await boss.start();
          const name = randomUUID();
          await boss.createQueue(name, { retryLimit: 2, retryDelay: 0 });
          const options = { transactional: true, pollingIntervalSeconds: 0.5 } as const;
          await boss.work(name, options, async ([job], tx) => {
            const attempt = job!.retryCount + 1;
            await tx.executeSql(insert, [attempt]);
            if (attempt === 1) throw new Error('busy');
            done();
          });
          await boss.send(name, {});
          return () => boss.stop({ graceful: false });
        }),
    },
  },
];

export const queues: Theme<QueueName> = {
  name: 'queues',
  file: 'queues.ts',
  isInTurn: false,
  contestants: {
    postgres: { label: 'Holdfast on PostgreSQL', packages: [], needs: 'postgres' },
    redis: { label: 'Holdfast on Redis', packages: [], needs: 'redis' },
    bullmq: { label: 'BullMQ', packages: ['bullmq'], needs: 'redis' },
    'pg-boss': { label: 'pg-boss', packages: ['pg-boss'], needs: 'postgres' },
  },
  claims,
};
