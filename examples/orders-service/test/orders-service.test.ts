import { describe, expect, test } from 'vitest';
import { printedInReadme, startExample } from '../../../scripts/examples/start-example.ts';
import { service, titled } from '../../../scripts/services/service.ts';
import { freshDatabase } from './fresh-database.ts';

const postgres = await service('postgres');

test('says which variable is missing', async () => {
  const example = await startExample('orders-service', { HOLDFAST_STORE: '' });
  expect(await example.ended).toBe(2);
  expect(example.output()).toContain('HOLDFAST_STORE wants the URL of a PostgreSQL database');
});

describe.skipIf(postgres.missing)(titled('on PostgreSQL', postgres), () => {
  test('two processes share a database: an order is placed once, and charged once it can be', async () => {
    const HOLDFAST_STORE = await freshDatabase(postgres.missing === undefined ? postgres.url : '');
    const environment = { HOLDFAST_STORE, PORT: '0', DRAIN_DELAY_MS: '100' };
    const examples = await Promise.all([0, 1].map(() => startExample('orders-service', environment)));
    const origins: string[] = [];
    for (const { printed } of examples) {
      const [line, origin = ''] = await printed(/^orders are taken on (http:\/\/127\.0\.0\.1:\d+)\n/m);
      expect(line.replace(/\d+\n$/, '3000\n')).toBe(await printedInReadme('orders-service'));
      origins.push(origin);
    }
    const place = (origin: string) =>
      fetch(`${origin}/orders`, {
        method: 'POST',
        body: '{"item":"book"}',
        headers: { 'idempotency-key': 'a' },
      });
    const placed = { id: 1, item: 'book', status: 'placed' };
    for (const origin of origins) {
      const answer = await place(origin);
      expect([answer.status, await answer.json()]).toEqual([201, placed]);
    }
    const order = async () => (await fetch(`${origins[1]}/orders/1`)).json();
    await expect.poll(order, { timeout: 15_000 }).toEqual({ ...placed, status: 'charged' });
    expect((await fetch(`${origins[0]}/orders/2`)).status).toBe(404);
    for (const example of examples) {
      example.signal('SIGTERM');
      expect(await example.ended).toBe(0);
      expect(example.output()).toContain('closed');
    }
  }, 60_000);
});
