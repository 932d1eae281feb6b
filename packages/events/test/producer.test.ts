import { commit, consumer, outbox, producer } from '@holdfast/events';
import { OptionsError, policy, withAmbient } from 'holdfast';
import { seededRandom } from 'holdfast/testing';
import { describe, expect, expectTypeOf, test, vi } from 'vitest';
import { z } from 'zod';
import { stage } from './stage.ts';

describe('a producer', () => {
  test('declares its topic, makes ids that sort by time, and writes JSON', async () => {
    const { engine, clock, broker } = stage();
    const orders = producer({ engine, topic: 'orders', ordering: 'key', clock, random: seededRandom('p') });
    const first = await orders.publish({
      type: 'placed',
      key: 'k',
      payload: { total: 3 },
      delay: '1s',
      patience: '1m',
    });
    await clock.advance(5);
    const second = await orders.publish({ payload: 'text' });
    expect(first.id < second.id).toBe(true);
    await clock.advance('1s');
    const { deliveries } = await broker.lease('orders', { owner: 'o', limit: 9, leaseMs: 1000 });
    expect(deliveries).toMatchObject([
      { payload: '"text"', patienceLeftMs: Infinity },
      { payload: '{"total":3}', type: 'placed', key: 'k', patienceLeftMs: 58_995 },
    ]);
    expect(await broker.declare('orders')).toMatchObject({ ordering: 'key' });
  });

  test('makes an id for an event without one, and so repeats a publish whose answer was lost', async () => {
    const { engine, clock, broker, left } = stage();
    const publish = broker.publish.bind(broker);
    vi.spyOn(broker, 'publish').mockImplementationOnce(async (topic, events) => {
      await publish(topic, events);
      throw new Error('no answer');
    });
    const again = policy({ attempts: 2, retryOn: 'any', backoff: { base: 0 } }, { clock });
    const orders = producer({ engine, topic: 'orders', clock, policy: again });
    const publishing = orders.publish({ id: undefined as never, payload: 1 });
    await clock.advance('1s');
    expect(await publishing).toMatchObject({ duplicate: true });
    expect(await left()).toHaveLength(1);
  });

  test('an asynchronous schema is refused, and its later rejection is ignored', async () => {
    const { engine, clock } = stage();
    const unheard = vi.fn();
    process.on('unhandledRejection', unheard);
    const schema = z.string().refine(async () => false);
    const orders = producer({ engine, topic: 'orders', clock, schema });
    await expect(orders.publish({ payload: 'a' })).rejects.toThrow(
      'schema: expected one that answers at once',
    );
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', unheard);
    expect(unheard).not.toHaveBeenCalled();
  });

  test('a publish whose patience is over does not fail others that share its write', async () => {
    const { engine, clock } = stage();
    const again = policy({ attempts: 2, retryOn: 'any' }, { clock });
    const orders = producer({ engine, topic: 'orders', clock, policy: again });
    const late = { patienceEndsAt: clock.now() - 1, signal: AbortSignal.abort(new Error('gone')) };
    const answers = await Promise.allSettled([
      withAmbient(late, () => orders.publish({ id: 'a', payload: 1 })),
      orders.publish({ id: 'b', payload: 2 }),
    ]);
    expect(answers[1]).toMatchObject({ status: 'fulfilled', value: { id: 'b' } });
  });

  test('an event that the engine cannot store fails alone', async () => {
    const { engine, clock, broker, left } = stage();
    const publish = broker.publish.bind(broker);
    vi.spyOn(broker, 'publish').mockImplementation(async (topic, events) => {
      const odd = events.find(({ key }) => key === 'odd');
      if (odd) throw new OptionsError('key', odd.key, 'another one');
      return publish(topic, events);
    });
    const orders = producer({ engine, topic: 'orders', clock });
    const answers = await Promise.allSettled([
      orders.publish({ id: 'a', payload: 1 }),
      orders.publish({ id: 'b', payload: 2, key: 'odd' }),
      orders.publish({ id: 'c', payload: 3, key: 17 as never }),
      orders.publish({ id: 'd', payload: 4 }),
    ]);
    expect(answers).toMatchObject([
      { status: 'fulfilled', value: { id: 'a', duplicate: false } },
      { status: 'rejected', reason: { path: 'key' } },
      { status: 'rejected', reason: { path: 'events[0].key' } },
      { status: 'fulfilled', value: { id: 'd', duplicate: false } },
    ]);
    expect(await left()).toEqual(['a ready', 'd ready']);
  });

  test('events published in one tick share a write, in order, and each publish gets its own result', async () => {
    const { engine, clock, broker, left } = stage();
    const publish = vi.spyOn(broker, 'publish');
    const orders = producer({ engine, topic: 'orders', clock });
    const answers = await Promise.all([
      orders.publish({ id: 'a', payload: 1 }),
      orders.publishAll([
        { id: 'b', payload: 2 },
        { id: 'c', payload: 3 },
      ]),
      orders.publish({ id: 'a', payload: 1 }),
    ]);
    expect(answers).toEqual([
      { id: 'a', duplicate: false },
      [
        { id: 'b', duplicate: false },
        { id: 'c', duplicate: false },
      ],
      { id: 'a', duplicate: true },
    ]);
    expect(publish).toHaveBeenCalledTimes(1);
    expect(await left()).toEqual(['a ready', 'b ready', 'c ready']);
  });

  test('refuses an event that cannot be stored, without failing other publishes', async () => {
    const { engine, clock, left } = stage();
    const orders = producer({ engine, topic: 'orders', clock, schema: z.object({ total: z.number() }) });
    const results = await Promise.allSettled([
      orders.publish({ id: 'a', payload: { total: 1 } }),
      orders.publish({ id: 'b', payload: { total: 'much' } as never }),
      orders.publish({ id: 'c', payload: { total: 1 }, key: 'k'.repeat(600) }),
      orders.publish({ id: 'd', payload: { total: 1 }, headers: { 'dlq-reason': 'mine' } }),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'rejected']);
    expect(results.map((result) => (result.status === 'rejected' ? result.reason.message : 'ok'))).toEqual([
      'ok',
      expect.stringContaining('total: '),
      'events[0].key.length is 600, and at most 512 is taken',
      expect.stringContaining('dlq-reason'),
    ]);
    expect(await left()).toEqual(['a ready']);
  });

  test('is checked by a schema, and stored as it was given: consumers have it changed once', async () => {
    const { engine, clock } = stage();
    const schema = z.object({ name: z.string().transform((name) => name.length) });
    const orders = producer({ engine, topic: 'orders', clock, schema });
    expectTypeOf(orders.publish).parameter(0).toHaveProperty('payload').toEqualTypeOf<{ name: string }>();
    await orders.publish({ payload: { name: 'Ann' } });
    const names: number[] = [];
    const handled = consumer({
      engine,
      topic: 'orders',
      clock,
      schema,
      handler: ({ payload }) => void names.push(payload.name),
    });
    await handled.start();
    await clock.advance('1s');
    await handled.stop();
    expect(names).toEqual([3]);
  });

  test('a publish that failed is repeated under the same ids, where a policy says so', async () => {
    let failures = 2;
    const { engine, clock, left } = stage({
      beforeWrite: () => {
        if (failures-- > 0) throw new Error('busy');
      },
    });
    const orders = producer({
      engine,
      topic: 'orders',
      clock,
      policy: policy({ retryOn: 'any' }, { clock }),
    });
    const published = orders.publish({ id: 'a', payload: 1 });
    await clock.advance('10s');
    expect(await published).toEqual({ id: 'a', duplicate: false });
    expect(await left()).toEqual(['a ready']);
    failures = 1;
    await expect(producer({ engine, topic: 'orders', clock }).publish({ payload: 1 })).rejects.toThrow(
      'busy',
    );
  });

  test('inherits the patience of the surrounding run if told so', async () => {
    const { engine, clock, broker } = stage();
    const orders = producer({ engine, topic: 'orders', clock, patience: 'inherit' });
    await withAmbient({ patienceEndsAt: clock.now() + 2000 }, () => orders.publish({ id: 'a', payload: 1 }));
    await orders.publish({ id: 'b', payload: 1 });
    const { deliveries } = await broker.lease('orders', { owner: 'o', limit: 9, leaseMs: 1000 });
    expect(deliveries.map(({ patienceLeftMs }) => patienceLeftMs)).toEqual([2000, Infinity]);
  });

  test('never takes the order by key away that another producer or consumer has declared', async () => {
    const { engine, clock, open, publish } = stage();
    await open({ ordering: 'key' });
    const second = producer({ engine, topic: 'orders', ordering: 'none', clock });
    await expect(second.publish({ payload: 1 })).rejects.toThrow(
      'topic "orders" was declared with ordering "key", and "none" is refused because somebody may rely on its ' +
        'order: leave `ordering` out, or give "key", or use another topic',
    );
    await expect(open({ ordering: 'none' })).rejects.toThrow('was declared with ordering "key"');
    await publish({ id: 'a' });
  });

  test('says what is wrong with its options', () => {
    const { engine } = stage();
    expect(() => producer({ topic: 'orders' })).toThrow(
      'broker: expected a broker, or an engine that has one',
    );
    expect(() => producer({ engine, topic: '' })).toThrow('topic: expected the name of a topic, got ""');
    expect(() => producer({ engine, topic: 'a', format: 'xml' as never })).toThrow(
      'format: expected json or raw, got "xml"',
    );
  });
});

describe('an outbox', () => {
  test('publishes with the effect of a handler, or not at all', async () => {
    const { engine, clock, broker, open, publish } = stage();
    await broker.declare('mails');
    const mails = outbox({ engine, topic: 'mails', clock });
    await open({
      policy: { attempts: 1 },
      handler: ({ id }) =>
        commit((tx) => {
          mails.publish(tx, { id: `mail for ${id}`, payload: { to: 'ann' } });
          if (id === 'b') throw new Error('no');
          tx.put(id, 'seen');
        }),
    });
    await publish({ id: 'a' }, { id: 'b' });
    await clock.advance('1s');
    const { items } = await broker.waiting('mails', { limit: 9 });
    expect(items.map(({ id }) => id)).toEqual(['mail for a']);
  });

  test.each([undefined, null])('refuses %s as a transaction, and says what it wants', (tx) => {
    const mails = outbox({ engine: stage().engine, topic: 'mails' });
    expect(() => mails.publish(tx as never, { payload: 1 })).toThrow(
      expect.objectContaining({ code: 'HOLDFAST_OPTIONS', path: 'tx' }),
    );
    expect(() => mails.publish(tx as never, { payload: 1 })).toThrow(/^tx: expected the transaction /);
  });
});
