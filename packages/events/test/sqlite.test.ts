import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { type Consumer, commit, consumer, producer, Solitude } from '@holdfast/events';
import { openSqlite, type SqliteEngine } from '@holdfast/sqlite';
import { seededRandom } from 'holdfast/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { down } from './stage.ts';

async function openFolder(): Promise<(name?: string) => Promise<SqliteEngine>> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-events-'));
  const engines: SqliteEngine[] = [];
  onTestFinished(async () => {
    for (const engine of engines) await engine.close();
    await rm(folder, { recursive: true });
  });
  return async () => {
    const engine = await openSqlite({ file: path.join(folder, 'events.db') });
    engines.push(engine);
    return engine;
  };
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  await expect.poll(condition, { timeout: 15_000, interval: 5 }).toBe(true);
}

describe('on SQLite', () => {
  test('two processes, failing handlers, a stop in the middle: nothing lost, effects once, order kept', async () => {
    const open = await openFolder();
    const first = await open();
    await first.transaction((database) =>
      database.exec('CREATE TABLE effect (position INTEGER PRIMARY KEY, id TEXT, key TEXT)'),
    );
    const total = 2000;
    const orders = producer({ engine: first, topic: 'orders', ordering: 'key', random: seededRandom('ids') });
    await orders.publishAll(
      Array.from({ length: total / 2 }, (_, index) => ({
        id: `e${index}`,
        key: `k${index % 40}`,
        payload: index,
      })),
    );

    const start = async (name: number): Promise<{ engine: SqliteEngine; made: Consumer }> => {
      const engine = await open();
      const chance = seededRandom('chance', name);
      const made = consumer<number, DatabaseSync>({
        ...{
          engine,
          topic: 'orders',
          name: 'effects@1',
          ordering: 'key',
          concurrency: 8,
          solitude: new Solitude(),
        },
        policy: { attempts: 50, backoff: { base: '1ms', cap: '5ms' } },
        handler: async ({ id, key = '', payload }) => {
          if (payload % 100 === 7) throw new TypeError('a bad order');
          if (chance() < 0.1) throw down();
          return commit((database) => {
            database.prepare('INSERT INTO effect (id, key) VALUES (?, ?)').run(id, key);
            if (chance() < 0.1) throw down('after the effect');
          });
        },
      });
      await made.start();
      return { engine, made };
    };
    const running = [await start(1), await start(2)];
    await orders.publishAll(
      Array.from({ length: total / 2 }, (_, index) => total / 2 + index).map((index) => ({
        ...{ id: `e${index}`, key: `k${index % 40}`, payload: index },
      })),
    );
    await until(() => running[0]!.made.state().counters.succeeded > 100);
    await running[0]!.made.stop();
    running.push(await start(3));
    await until(async () => {
      const { ready, delayed, behind, leased, suspect } = await first.broker.counts('orders');
      return ready + delayed + behind + leased + suspect === 0;
    });
    for (const { made } of running) await made.stop();

    const effects = await first.transaction(
      (database) =>
        database.prepare('SELECT id, key FROM effect ORDER BY position').all() as {
          id: string;
          key: string;
        }[],
    );
    expect(effects.length).toBe(total - total / 100);
    expect(new Set(effects.map(({ id }) => id)).size).toBe(effects.length);
    expect(await first.triage.count({ stop: 'not_retryable' })).toBe(total / 100);
    for (let key = 0; key < 40; key++) {
      const order = effects.filter((effect) => effect.key === `k${key}`).map(({ id }) => Number(id.slice(1)));
      expect(order).toEqual([...order].sort((a, b) => a - b));
    }
  });

  test('what is published is handled at once, without waiting for a poll', async () => {
    const open = await openFolder();
    const engine = await open();
    const handled: unknown[] = [];
    const made = consumer({
      engine,
      topic: 'orders',
      poll: '1h',
      handler: ({ payload }) => void handled.push(payload),
    });
    await made.start();
    const orders = producer({ engine, topic: 'orders' });
    for (const payload of [1, 2, 3]) {
      await orders.publish({ payload });
      await until(() => handled.length === payload);
    }
    await made.stop();
    expect(made.state()).toMatchObject({ status: 'stopped', counters: { succeeded: 3 } });
  });

  test('lets go of the thread, however much there is to do', async () => {
    const open = await openFolder();
    const engine = await open();
    const orders = producer({ engine, topic: 'orders' });
    for (let batch = 0; batch < 10; batch++)
      await orders.publishAll(Array.from({ length: 1000 }, () => ({ payload: 1 })));
    const made = consumer({ engine, topic: 'orders', handler: () => {} });
    await made.start();
    let turns = 0;
    while (made.state().counters.succeeded < 10_000) {
      await new Promise((resolve) => setImmediate(resolve));
      turns += 1;
    }
    expect(turns).toBeGreaterThan(3);
    await made.stop();
  });
});
