import path from 'node:path';
import { openSqlite, type SqliteEngine } from '@holdfast/sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { printedInReadme, startExample, temporaryFolder } from '../../../scripts/examples/start-example.ts';
import { createTables, placeOrder, topic } from '../src/place-order.ts';

async function storeFile(): Promise<string> {
  return path.join(await temporaryFolder(), 'shop.db');
}

async function open(file: string): Promise<SqliteEngine> {
  const engine = await openSqlite({ file });
  onTestFinished(() => engine.close());
  return engine;
}

/** The orders and the mails that wait, by the id of their order. */
async function contents(engine: SqliteEngine): Promise<{ orders: unknown[]; mails: unknown[] }> {
  const rows = await engine.transaction((database) => database.prepare('SELECT id FROM orders').all());
  const { items } = await engine.broker.waiting(topic, { limit: 10 });
  return { orders: rows.map(({ id }) => id), mails: items.map(({ key }) => key) };
}

test('prints what the README shows', async () => {
  const example = await startExample('outbox', { STORE_FILE: await storeFile() });
  expect(await example.ended).toBe(0);
  expect(example.output()).toBe(await printedInReadme('outbox'));
});

test('killed after the commit, the mail waits, and the next start sends it', async () => {
  const STORE_FILE = await storeFile();
  const killed = await startExample('outbox', { STORE_FILE, CRASH: 'after commit' });
  expect(await killed.ended).toBe(null);
  const engine = await openSqlite({ file: STORE_FILE });
  expect(await contents(engine)).toEqual({ orders: ['order-1'], mails: ['order-1'] });
  await engine.close();

  const next = await startExample('outbox', { STORE_FILE });
  expect(await next.ended).toBe(0);
  expect(next.output().match(/^mail .+$/gm)).toEqual([
    'mail for order-1 is sent',
    'mail for order-2 is sent',
  ]);
});

test('killed before the commit, there is neither the order nor the mail', async () => {
  const STORE_FILE = await storeFile();
  const killed = await startExample('outbox', { STORE_FILE, CRASH: 'before commit' });
  expect(await killed.ended).toBe(null);
  expect(await contents(await open(STORE_FILE))).toEqual({ orders: ['order-1'], mails: ['order-1'] });
});

test('a transaction that is rolled back leaves nothing', async () => {
  const engine = await open(await storeFile());
  await createTables(engine);
  const failing = placeOrder(engine, { id: 'a', item: 'a lamp' }, () => {
    throw new Error('sold out');
  });
  await expect(failing).rejects.toThrow('sold out');
  expect(await contents(engine)).toEqual({ orders: [], mails: [] });
  await placeOrder(engine, { id: 'a', item: 'a lamp' });
  expect(await contents(engine)).toEqual({ orders: ['a'], mails: ['a'] });
});
