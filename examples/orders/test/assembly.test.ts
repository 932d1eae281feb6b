import { assemblies } from '@holdfast/assembly';
import { createFetch } from '@holdfast/http';
import { openSqlite } from '@holdfast/sqlite';
import { policy } from 'holdfast';
import { seededRandom } from 'holdfast/testing';
import { expect, onTestFinished, test } from 'vitest';
import { soldOut, startFlakyServices } from '../src/assembly/flaky-services.ts';
import { createPlaced, placeOrderProgram } from '../src/assembly/place-order.ts';

async function shop() {
  const engine = await openSqlite({ file: ':memory:' });
  await engine.transaction(createPlaced);
  const random = seededRandom('orders', 1);
  const services = await startFlakyServices({ seed: 1, faults: [{ kind: 'reset', rate: 0.05 }] }, random);
  const send = createFetch({ idempotency: 'derive', policy: policy({ name: 'services', attempts: 1 }) });
  const placeOrder = placeOrderProgram(send, services.url);
  const work = assemblies({ engine, programs: [placeOrder] });
  await work.run();
  onTestFinished(async () => {
    await work.stop();
    await services.close();
    await engine.close();
  });
  const placed = () =>
    engine.transaction((database) => database.prepare('SELECT id FROM placed ORDER BY id').all());
  return { services, placeOrder, work, placed };
}

test('each order is placed once, although all four services fail', { timeout: 60_000 }, async () => {
  const { services, placeOrder, work, placed } = await shop();
  const names = Array.from({ length: 20 }, (_, number) => `order ${number + 10}`);
  const handles = await Promise.all(
    names.map((order) => work.start(placeOrder, { order, item: 'a book' }, { id: order })),
  );
  const ends = await Promise.all(handles.map((handle) => handle.result()));
  expect(ends.map(({ order }) => order)).toEqual(names);
  expect(await placed()).toEqual(names.map((id) => ({ id })));
  for (const act of ['payment/charge', 'stock/reserve', 'shipping/ship', 'notification/send'])
    expect(services.deeds[act]?.toSorted()).toEqual(names);
  expect(services.repeated).toBeGreaterThan(0);
});

test('the customer follows an order live, from the first step to the end', { timeout: 60_000 }, async () => {
  const { placeOrder, work } = await shop();
  const order = await work.start(placeOrder, { order: 'order 1', item: 'a book' }, { patience: '1m' });
  const told: string[] = [];
  for await (const { text } of order.follow()) told.push(text);
  expect(told[0]).toBe('accepted');
  expect(told.at(-1)).toBe('done');
  expect(told).toContainEqual(expect.stringMatching(/^step \d of 5/));
});

test('who is charged for something that is sold out gets the money back', { timeout: 60_000 }, async () => {
  const { services, placeOrder, work, placed } = await shop();
  const order = await work.start(placeOrder, { order: 'order 1', item: soldOut });
  const told: string[] = [];
  for await (const { text } of order.follow()) told.push(text);
  expect(told.at(-1)).toMatch(/^stopped because .*stock\/reserve answered 409/);
  await expect(order.result()).rejects.toThrow('stopped');
  expect(services.deeds).toMatchObject({ 'payment/charge': ['order 1'], 'payment/refund': ['order 1'] });
  expect(services.deeds['shipping/ship']).toBeUndefined();
  expect(await placed()).toEqual([]);
});
