import { type Consumer, commit, consumer, ExclusiveRun, operations, producer } from '@holdfast/events';
import { policy } from 'holdfast';
import { seededRandom } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { postgresStore, type SharedStore, sqliteStore } from './shared-stores.ts';
import { act, down } from './stage.ts';

const postgres = await service('postgres');
const waiting = { timeout: 30_000, interval: 10 };

function engines(name: string, isMissing: boolean, createStore: () => Promise<SharedStore>): void {
  describe.skipIf(isMissing)(name, () => {
    test('two processes, failing handlers, a stop in the middle: nothing lost, effects once, order kept', {
      timeout: 60_000,
    }, async () => {
      const { open, write, effects } = await createStore();
      const first = await open();
      const total = 2000;
      const draft = (index: number) => ({ id: `e${index}`, key: `k${index % 40}`, payload: index });
      const orders = producer({ engine: first, topic: 'orders', ordering: 'key' });
      await orders.publishAll(Array.from({ length: total / 2 }, (_, index) => draft(index)));

      const start = async (number: number): Promise<Consumer> => {
        const chance = seededRandom('chance', number);
        const made = consumer<number>({
          ...{ engine: await open(), topic: 'orders', name: 'effects@1', ordering: 'key', concurrency: 8 },
          exclusiveRun: new ExclusiveRun(),
          policy: { attempts: 50, backoff: { base: '1ms', cap: '5ms' } },
          handler: async ({ id, key = '', payload }) => {
            if (payload % 100 === 7) throw new TypeError('a bad order');
            if (chance() < 0.1) throw down();
            const isUnlucky = chance() < 0.1;
            return commit((tx) => {
              const written = write(tx, { id, key });
              if (!isUnlucky) return written;
              if (!(written instanceof Promise)) throw down('after the effect');
              return written.then(() => Promise.reject(down('after the effect')));
            });
          },
        });
        await made.start();
        return made;
      };
      const running = [await start(1), await start(2)];
      await orders.publishAll(Array.from({ length: total / 2 }, (_, index) => draft(total / 2 + index)));
      await expect.poll(() => running[0]!.state().counters.succeeded, waiting).toBeGreaterThan(100);
      await running[0]!.stop();
      running.push(await start(3));
      const left = async () => {
        const { ready, delayed, behind, leased, suspect } = await first.broker.counts('orders');
        return ready + delayed + behind + leased + suspect;
      };
      await expect.poll(left, waiting).toBe(0);
      for (const made of running) await made.stop();

      const made = await effects();
      expect(made.length).toBe(total - total / 100);
      expect(new Set(made.map(({ id }) => id)).size).toBe(made.length);
      expect(await first.triage.count({ stop: 'not_retryable' })).toBe(total / 100);
      for (let key = 0; key < 40; key++) {
        const order = made.filter((effect) => effect.key === `k${key}`).map(({ id }) => Number(id.slice(1)));
        expect(order).toEqual([...order].sort((a, b) => a - b));
      }
    });

    test('what is published is handled at once, without waiting for a poll', async () => {
      const engine = await (await createStore()).open();
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
        await expect.poll(() => handled.length, waiting).toBe(payload);
      }
      await made.stop();
      expect(made.state()).toMatchObject({ status: 'stopped', counters: { succeeded: 3 } });
    });

    test('a replay is heard of when its events succeed', async () => {
      const engine = await (await createStore()).open();
      let isFixed = false;
      const made = consumer({
        engine,
        topic: 'orders',
        handler: () => {
          if (!isFixed) throw new TypeError('a bug');
        },
      });
      await made.start();
      await engine.broker.publish(
        'orders',
        Array.from({ length: 30 }, (_, index) => ({ id: `e${index}`, payload: '1' })),
      );
      await expect.poll(() => made.state().counters.parked, waiting).toBe(30);
      isFixed = true;
      const replays = operations({ engine });
      const { id } = await replays.begin(
        { kind: 'replay', filter: { topic: 'orders' }, rate: 1000, canary: 2, canaryMs: 10 },
        act,
      );
      expect(await replays.run(id)).toMatchObject({ stage: 'done', counts: { released: 30, succeeded: 30 } });
      await made.stop();
    });

    test('an outage of many probes costs no event anything, and keeps the order of keys', {
      timeout: 60_000,
    }, async () => {
      const { open, write, effects } = await createStore();
      const engine = await open();
      const name = `payment of ${engine.name} ${process.pid}`;
      const payment = policy({ name, attempts: 1, retryOn: 'any', breaker: { openFor: ['10ms', '20ms'] } });
      const orders = producer({ engine, topic: 'orders', ordering: 'key' });
      await orders.publishAll(
        Array.from({ length: 40 }, (_, index) => ({ id: `e${index}`, key: `k${index % 8}`, payload: index })),
      );
      let isDown = true;
      let calls = 0;
      const made = consumer<number>({
        ...{
          engine,
          topic: 'orders',
          name: 'effects@1',
          dependsOn: [name],
          exclusiveRun: new ExclusiveRun(),
        },
        policy: { attempts: 3, backoff: { base: '1ms', cap: '5ms' } },
        handler: async ({ id, key = '' }) => {
          calls += 1;
          await payment.run(async () => {
            if (isDown) throw down();
          });
          return commit((tx) => write(tx, { id, key }));
        },
      });
      await made.start();
      // Each event would have been parked after three.
      await expect.poll(() => calls, waiting).toBeGreaterThan(150);
      const { items } = await engine.broker.waiting('orders', { limit: 100 });
      expect(items.length).toBe(40);
      expect(Math.max(...items.map(({ attempts }) => attempts))).toBeLessThan(3);
      isDown = false;
      await expect.poll(() => made.state().counters.succeeded, waiting).toBe(40);
      await made.stop();
      expect(await engine.triage.count({ topic: 'orders' })).toBe(0);
      const done = await effects();
      for (let key = 0; key < 8; key++) {
        const order = done.filter((effect) => effect.key === `k${key}`).map(({ id }) => Number(id.slice(1)));
        expect(order).toEqual([...order].sort((a, b) => a - b));
      }
    });

    test('lets go of the thread, however much there is to do', async () => {
      const engine = await (await createStore()).open();
      const orders = producer({ engine, topic: 'orders' });
      for (let batch = 0; batch < 10; batch++) {
        await orders.publishAll(Array.from({ length: 1000 }, () => ({ payload: 1 })));
      }
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
}

engines('on SQLite', false, sqliteStore);
engines(titled('on PostgreSQL', postgres), postgres.missing !== undefined, () =>
  postgresStore(postgres.missing === undefined ? postgres.url : ''),
);
