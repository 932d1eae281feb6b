import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { type Consumer, consumer } from '@holdfast/events';
import { openSqlite, type SqliteEngine } from '@holdfast/sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { handleOrder } from '../src/snippets/answers.ts';
import { handleOrders } from '../src/snippets/first-consumer.ts';
import { shipAndTell } from '../src/snippets/mail-outbox.ts';
import { rebuildTotals } from '../src/snippets/rebuild-view.ts';
import { replayLargestGroup } from '../src/snippets/replay-group.ts';

const root = path.resolve(import.meta.dirname, '../../..');

async function setup(): Promise<{
  file: string;
  engine: SqliteEngine;
  run(options: object): Promise<Consumer>;
}> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-snippets-'));
  const file = path.join(folder, 'events.db');
  const engine = await openSqlite({ file });
  const running: Consumer[] = [];
  onTestFinished(async () => {
    for (const each of running) await each.stop();
    await engine.close();
    await rm(folder, { recursive: true });
  });
  return {
    file,
    engine,
    async run(options) {
      const made = consumer({ engine, topic: 'orders', ...options } as never);
      running.push(made);
      await made.start();
      return made;
    },
  };
}

const eventually = { timeout: 10_000, interval: 10 };

test('a first consumer', async () => {
  const { file, engine } = await setup();
  const orders = await handleOrders(file);
  onTestFinished(() => orders.stop());
  await expect.poll(() => orders.state().counters.succeeded, eventually).toBe(1);
  const rows = await engine.transaction((database) => database.prepare('SELECT * FROM paid').all());
  expect(rows).toEqual([{ id: 'order-17', total: 40 }]);
});

test('what a handler may answer', async () => {
  const { engine, run } = await setup();
  await engine.broker.declare('large-orders');
  await run({ handler: handleOrder, policy: { backoff: { base: 1, cap: 1 } } });
  const payloads = [
    ...[{ total: 0 }, { total: -1 }, { total: 20_000 }, { total: 5, stock: 'counted' }],
    ...[
      { total: 5, stock: 'unknown' },
      { total: 5, stock: 'there' },
    ],
  ];
  await engine.broker.publish(
    'orders',
    payloads.map((payload, index) => ({ id: `e${index}`, payload: JSON.stringify(payload) })),
  );
  await expect
    .poll(
      async () =>
        (await engine.broker.waiting('orders', { limit: 9 })).items.map(({ id, snoozes }) => [id, snoozes]),
      eventually,
    )
    .toEqual([['e3', 1]]);
  expect((await engine.triage.get('e1'))?.diagnosis.stop).toBe('a negative total');
  expect((await engine.broker.waiting('large-orders', { limit: 9 })).items).toMatchObject([{ id: 'e2' }]);
});

test('an outbox', async () => {
  const { engine, run } = await setup();
  await engine.broker.declare('mails');
  await engine.transaction((database) => database.exec('CREATE TABLE shipped (id TEXT)'));
  const orders = await run({ handler: shipAndTell(engine) });
  await engine.broker.publish('orders', [{ id: 'a', key: 'order-1', payload: '{}' }]);
  await expect.poll(() => orders.state().counters.succeeded, eventually).toBe(1);
  expect((await engine.broker.waiting('mails', { limit: 9 })).items).toMatchObject([
    { type: 'shipped', key: 'order-1' },
  ]);
});

test('a replay of a group', async () => {
  const { engine, run } = await setup();
  const bug = { isFixed: false };
  const orders = await run({
    handler: () => {
      if (!bug.isFixed) throw new TypeError('total is not a number');
    },
  });
  await engine.broker.publish(
    'orders',
    Array.from({ length: 20 }, (_, index) => ({ id: `e${index}`, payload: '{}' })),
  );
  await expect.poll(() => orders.state().counters.parked, eventually).toBe(20);
  bug.isFixed = true;
  const lines: string[] = [];
  expect(await replayLargestGroup(engine, (line) => lines.push(line))).toMatchObject({
    stage: 'done',
    counts: { succeeded: 20 },
  });
  expect([lines[0], lines.at(-1)]).toEqual(['20 events: TypeError: total is not a number', 'done: 20 of 20']);
});

test('a rebuild', async () => {
  const { engine, run } = await setup();
  const orders = await run({ keepSettled: '1d', handler: () => {} });
  await engine.broker.publish('orders', [{ id: 'a', key: 'order-1', payload: '{"total":4}' }]);
  await expect.poll(() => orders.state().counters.succeeded, eventually).toBe(1);
  expect(await rebuildTotals(engine, 'first')).toMatchObject({ handled: 1, skipped: 0 });
  expect(await rebuildTotals(engine, 'first')).toMatchObject({ handled: 0, skipped: 1 });
});

test('docs/events.md shows these files as they are, and what it links to is there', async () => {
  const page = await readFile(path.join(root, 'docs/events.md'), 'utf8');
  const shown = [...page.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code);
  const folder = path.join(root, 'examples/orders/src/snippets');
  const files = await Promise.all(
    (await readdir(folder)).map((name) => readFile(path.join(folder, name), 'utf8')),
  );
  expect(shown.toSorted()).toEqual(files.toSorted());
  for (const [, link] of page.matchAll(/\]\(([^)#]+)\)/g)) {
    await expect(stat(path.join(root, 'docs', link!)), link).resolves.toBeDefined();
  }
});
