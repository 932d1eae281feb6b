import { assembly, assemblyDoor } from '@holdfast/assembly';
import { permanent } from 'holdfast';
import { expect, test } from 'vitest';
import { settle, stage } from './stage.ts';

const program = assembly(
  'place-order',
  { plan: ['charge', 'ship'] },
  async (step, order: { slow?: boolean; bad?: boolean }) => {
    await step.run('charge', () => 1);
    if (order.slow) await step.waitFor('approved', { because: 'waiting for approval' });
    if (order.bad) await step.run('ship', () => Promise.reject(permanent(new Error('secret detail'))));
    return { number: 7 };
  },
);

async function setup() {
  const { open, clock, pass } = stage();
  const work = open([program]);
  await work.run();
  const door = assemblyDoor({
    ...{ assemblies: work, programs: [program], clock },
    authorize: (request) => {
      const tenant = request.headers.get('x-tenant');
      return tenant === null ? false : { tenant };
    },
  });
  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    door(
      new Request(`http://shop.example${path}`, {
        method,
        headers: { 'x-tenant': 'acme', ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    );
  return { work, call, clock, pass, door };
}

test('answers in time if the work is done in time', async () => {
  const { call } = await setup();
  const response = await call(
    'POST',
    '/assemblies/place-order',
    {},
    { prefer: 'wait=5', 'idempotency-key': '"k1"' },
  );
  expect(response.status).toBe(200);
  expect(response.headers.get('preference-applied')).toBe('wait=5');
  expect(await response.json()).toMatchObject({
    result: { number: 7 },
    status: { state: 'done', id: 'acme:k1' },
  });
});

test('answers 202 with a place to look when the wait is over', async () => {
  const { call, pass } = await setup();
  const waiting = call(
    'POST',
    '/assemblies/place-order',
    { slow: true },
    { prefer: 'wait=2', 'idempotency-key': 'k' },
  );
  await pass(2100);
  const response = await waiting;
  expect(response.status).toBe(202);
  expect(response.headers.get('location')).toBe('/assemblies/place-order/acme%3Ak');
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await response.json()).toMatchObject({ status: { text: 'step 2 of 2, waiting for approval' } });

  const again = await call('POST', '/assemblies/place-order', { slow: true }, { 'idempotency-key': 'k' });
  expect(again.status).toBe(202);
  const other = await call('POST', '/assemblies/place-order', { slow: false }, { 'idempotency-key': 'k' });
  expect(other.status).toBe(422);

  const etag = response.headers.get('etag')!;
  const location = response.headers.get('location')!;
  expect((await call('GET', location, undefined, { 'if-none-match': etag })).status).toBe(304);
  expect((await call('POST', `${location}/signals/approved`, 'yes')).status).toBe(202);
  await settle(5);
  const done = await call('GET', location, undefined, { prefer: 'wait=1' });
  expect([done.status, await done.json()]).toMatchObject([200, { result: { number: 7 } }]);
});

test('tells how it goes as server-sent events, and goes on where a connection was lost', async () => {
  const { call, pass } = await setup();
  const started = await call('POST', '/assemblies/place-order', { slow: true }, { 'idempotency-key': 'k' });
  const location = started.headers.get('location')!;
  await settle(5);
  const stream = await call('GET', `${location}/events`);
  expect(stream.headers.get('content-type')).toBe('text/event-stream');
  const text = stream.text();
  await settle(5);
  await call('POST', `${location}/signals/approved`);
  await pass(100);
  const events = (await text).trim().split('\n\n');
  expect(events.map((each) => /event: (\w+)/.exec(each)![1])).toEqual(['accepted', 'waiting', 'done']);
  const last = /id: (\d+)/.exec(events[1]!)![1]!;
  const resumed = await (
    await call('GET', `${location}/events`, undefined, { 'last-event-id': last })
  ).text();
  expect(resumed).toBe(`${events[2]}\n\n`);
});

test('cancels, and says why it stopped', async () => {
  const { call, pass } = await setup();
  const started = await call('POST', '/assemblies/place-order', { slow: true });
  const location = started.headers.get('location')!;
  await call('POST', `${location}/cancel`, { reason: 'too slow' });
  await pass(200);
  const stopped = await call('GET', location);
  expect([stopped.status, stopped.headers.get('content-type')]).toEqual([409, 'application/problem+json']);
  expect(await stopped.json()).toMatchObject({ title: 'stopped because too slow', because: 'cancelled' });
});

test('lets strangers see nothing, and customers no details', async () => {
  const { call, door, pass } = await setup();
  const started = await call('POST', '/assemblies/place-order', { bad: true }, { 'idempotency-key': 'k' });
  const location = started.headers.get('location')!;
  await pass(100);
  expect((await call('GET', location, undefined, { 'x-tenant': 'evil' })).status).toBe(404);
  expect((await call('POST', `${location}/cancel`, {}, { 'x-tenant': 'evil' })).status).toBe(404);
  expect((await call('GET', '/assemblies/place-order/none')).status).toBe(404);
  expect(
    (await door(new Request('http://shop.example/assemblies/place-order', { method: 'POST' }))).status,
  ).toBe(403);
  const parked = await call('GET', location);
  expect(parked.status).toBe(202);
  const text = await parked.text();
  expect(text).toContain('waits for a person');
  expect(text).not.toContain('secret detail');
});

test('refuses what it can not read with a sentence', async () => {
  const { call, door } = await setup();
  expect((await call('POST', '/assemblies/nothing', {})).status).toBe(404);
  expect((await call('PUT', '/assemblies/place-order', {})).status).toBe(405);
  const bad = new Request('http://shop.example/assemblies/place-order', {
    ...{ method: 'POST', body: '{', headers: { 'x-tenant': 'acme' } },
  });
  expect(await (await door(bad)).json()).toMatchObject({ title: 'the body is not JSON', status: 400 });
});
