import { setTimeout as pause } from 'node:timers/promises';
import type { Delivery, Settlement } from '@holdfast/contracts';
import { type Carrier, carrierEngine } from '@holdfast/contracts/carrier';
import { memoryEngine } from '@holdfast/contracts/memory';
import { connect, headers } from '@nats-io/transport-node';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { ownService, service, titled } from '../../../scripts/services/service.ts';
import { fromNatsHeaders, toNatsHeaders } from '../src/header-text.ts';
import { openNats } from '../src/index.ts';
import { Names, partitionOf } from '../src/names.ts';
import { type NatsHandle, natsCarrier } from '../src/nats-carrier.ts';
import { type NatsOptions, readNatsOptions } from '../src/open-nats.ts';
import { removeStreams } from './nats-harness.ts';

const nats = await service('nats');
const url = nats.missing === undefined ? nats.url : 'nats://localhost:4222';
const prefixes: string[] = [];

function newPrefix(): string {
  prefixes.push(`nats-${process.pid}-${prefixes.length}`);
  return prefixes.at(-1)!;
}

afterAll(async () => {
  if (nats.missing === undefined) for (const prefix of prefixes) await removeStreams(url, prefix);
});

type Engine = ReturnType<typeof openNats>;

/** Leases until there are `count` events, or `ms` have passed. */
async function take({ broker }: Engine, topic: string, count: number, ms = 10_000): Promise<Delivery[]> {
  const taken: Delivery[] = [];
  for (const end = Date.now() + ms; taken.length < count && Date.now() < end; await pause(20)) {
    const request = { owner: 'w', limit: count - taken.length, leaseMs: 30_000 };
    taken.push(...(await broker.lease(topic, request)).deliveries);
  }
  return taken;
}

const retryOf = ({ lease }: Delivery): Settlement => ({
  ...{ lease, kind: 'retry', delayMs: 0, story: [] },
  error: { type: 'Error', message: 'no', fingerprint: 'f' },
});

describe('options', () => {
  test.each<[object, string]>([
    [{}, 'url'],
    [{ url: 'localhost:4222' }, 'nats://localhost:4222'],
    [{ url: [] }, 'url'],
    [{ url, replicas: 6 }, 'a whole number from 1 to 5'],
    [{ url, partitions: 0 }, 'partitions'],
    [{ url, ackWait: 5 }, 'ackWait'],
    [{ url, prefix: 'a.b' }, 'letters, digits and hyphens'],
    [{ url, parkedSuffix: '' }, 'parkedSuffix'],
    [{ url, prefetchMax: 1.5 }, 'prefetchMax'],
    [{ url, limits: { payloadBytesMax: 0 } }, 'payloadBytesMax'],
    [{ url, replica: 3 }, 'replica'],
    [{ url, store: { name: 'redis' } }, 'an engine that keeps the order of keys'],
  ])('%j is refused with a sentence', (options, sentence) => {
    expect(() => openNats(options as NatsOptions)).toThrow(sentence);
  });

  test('say what is missing without a store', async () => {
    const { features, ...engine } = openNats({ url });
    expect(features.ordering).toEqual({ missing: expect.stringContaining('give a store') });
    expect(engine.triage).toBeUndefined();
    await engine.close();
    const withStore = openNats({ url, store: memoryEngine() });
    expect(withStore.features).toMatchObject({ ordering: true, quarantine: true, parksInTriage: true });
    expect(withStore.triage).toBeDefined();
    await withStore.close();
  });
});

describe('texts', () => {
  const text = fc.string({ unit: 'binary' }).map((each) => each.toWellFormed());

  test('come back from headers as they went', () => {
    const names = fc.dictionary(
      text.filter((name) => name !== '' && !name.startsWith('Nats-') && name !== '__proto__'),
      text,
    );
    fc.assert(
      fc.property(names, (wire) => {
        expect(fromNatsHeaders(toNatsHeaders(wire, 'id'))).toEqual(wire);
      }),
    );
  });

  test('make topics into one token, and back', () => {
    const names = new Names('holdfast');
    fc.assert(
      fc.property(text, (topic) => {
        const stream = names.stream(topic);
        expect(stream).toMatch(/^[\w-]+$/);
        expect(names.topicOf(stream)).toBe(topic);
        expect(names.subject(topic, 'hot', 3).split('.')).toHaveLength(4);
      }),
    );
    expect(names.topicOf('others')).toBeUndefined();
  });

  test('have a partition', () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 256 }), (key, partitions) => {
        const partition = partitionOf(key, partitions);
        expect(partition).toBeGreaterThanOrEqual(0);
        expect(partition).toBeLessThan(partitions);
      }),
    );
  });
});

describe.skipIf(nats.missing)(titled('on a server', nats), () => {
  test('refuses key order at the start, with the sentence that says what to do', async () => {
    const engine = openNats({ url, prefix: newPrefix() });
    await expect(engine.broker.declare('orders', { ordering: 'key' })).rejects.toThrow(
      'ordering: a retry leaves its place in the queue, and later events of its key would overtake it: give a store',
    );
    await engine.close();
  });

  test('keeps one retry of an event whose process died between the publish and the acknowledgement', async () => {
    const prefix = newPrefix();
    const { carrier: settings, rest } = readNatsOptions({ url, prefix, ackWait: 500 });
    const first = natsCarrier(settings);
    const mortal: Carrier<NatsHandle> = {
      ...first,
      done: () => Promise.reject(new Error('the process has died')),
    };
    const dying = carrierEngine(mortal, { ...rest, durability: 'process' });
    await dying.broker.declare('orders');
    await dying.broker.publish('orders', [{ id: 'e1', payload: 'a' }]);
    const [held] = await take(dying, 'orders', 1);
    await expect(dying.broker.settle([retryOf(held!)])).rejects.toThrow('died');
    await first.close();

    const next = openNats({ url, prefix, ackWait: 500 });
    const both = await take(next, 'orders', 2);
    expect(both.map(({ id, attempt }) => [id, attempt]).toSorted()).toEqual([
      ['e1', 1],
      ['e1', 2],
    ]);
    const [original, copy] = both.toSorted((a, b) => a.attempt - b.attempt);
    // The server knows the retry of this message: it is not stored a second time.
    await next.broker.settle([retryOf(original!), { lease: copy!.lease, kind: 'ack' }]);
    expect(await take(next, 'orders', 1, 1500)).toEqual([]);
    await next.close();
  });

  test('reads what was published, from a time or a sequence, also what is done', async () => {
    const engine = openNats({ url, prefix: newPrefix() });
    const { broker } = engine;
    expect(await broker.declare('orders', { keepSettledMs: 60_000 })).toMatchObject({
      keepSettledMs: 60_000,
    });
    await broker.publish('orders', [{ payload: 'a' }, { payload: 'b' }, { payload: 'c' }]);
    const settled = await take(engine, 'orders', 3);
    await broker.settle(settled.map(({ lease }) => ({ lease, kind: 'ack' })));
    await pause(5);
    const from = Date.now();
    await pause(5);
    await broker.publish('orders', [{ id: 'later', payload: 'd', headers: { x: 'y' } }]);

    const payloads = async (range: object) => {
      const { items, cursor } = await broker.history('orders', { limit: 10, ...range });
      return [items.map(({ payload }) => payload).join(''), cursor];
    };
    expect(await payloads({})).toEqual(['abcd', undefined]);
    expect(await payloads({ from })).toEqual(['d', undefined]);
    expect(await payloads({ to: from })).toEqual(['abc', undefined]);
    expect(await payloads({ cursor: '2' })).toEqual(['cd', undefined]);
    const [, cursor] = await payloads({ limit: 2 });
    expect(await payloads({ limit: 2, cursor })).toEqual(['cd', undefined]);
    expect((await broker.history('orders', { limit: 1, from })).items).toMatchObject([
      { id: 'later', headers: { x: 'y' }, originTopic: 'orders' },
    ]);
    await engine.close();
  });

  test('removes what is done and old, and nothing that is not done', async () => {
    const engine = openNats({ url, prefix: newPrefix() });
    const { broker } = engine;
    await broker.declare('orders', { keepSettledMs: 1 });
    await broker.publish('orders', [{ payload: 'done' }, { payload: 'open' }, { payload: 'done, too' }]);
    const [first, second, third] = await take(engine, 'orders', 3);
    await broker.settle([first!, third!].map(({ lease }) => ({ lease, kind: 'ack' })));
    await pause(10);
    expect(await engine.sweep(100)).toBe(1);
    const { items } = await broker.history('orders', { limit: 10 });
    expect(items.map(({ payload }) => payload)).toEqual(['open', 'done, too']);
    await broker.settle([{ lease: second!.lease, kind: 'ack' }]);
    expect(await engine.sweep(100)).toBe(2);
    await engine.close();
  });

  test('does not change whether a stream keeps what is done', async () => {
    const engine = openNats({ url, prefix: newPrefix() });
    await engine.broker.declare('orders');
    await expect(engine.broker.declare('orders', { keepSettledMs: 1000 })).rejects.toThrow(
      'NATS cannot change the retention of a stream',
    );
    await engine.close();
  });

  test('reads what strangers publish, and lists topics by their names', async () => {
    const prefix = newPrefix();
    const engine = openNats({ url, prefix });
    await engine.broker.declare('orders.größe');
    expect((await engine.broker.topics()).toSorted()).toEqual(['orders.größe', 'orders.größe.dlq']);
    const stranger = await connect({ servers: url });
    const given = headers();
    given.append('trace', 'first');
    given.append('trace', 'last');
    const subject = new Names(prefix).subject('orders.größe', 'hot');
    stranger.publish(subject, 'plain', { headers: given });
    stranger.publish(subject, new Uint8Array([255, 0]));
    await stranger.flush();
    const [plain, bytes] = await take(engine, 'orders.größe', 2);
    expect(plain).toMatchObject({
      id: 'orders.größe/1',
      payload: 'plain',
      headers: { trace: 'last' },
      attempt: 1,
    });
    expect(bytes).toMatchObject({ payload: new Uint8Array([255, 0]) });
    await stranger.close();
    await engine.close();
  });

  test('gives what it has fetched back to others when it ends', async () => {
    const prefix = newPrefix();
    const first = openNats({ url, prefix });
    await first.broker.declare('orders');
    await first.broker.publish('orders', [{ payload: 'a' }, { payload: 'b' }, { payload: 'c' }]);
    await take(first, 'orders', 1);
    await first.close();
    const second = openNats({ url, prefix });
    // Far sooner than `ackWait`, which is 30 seconds.
    expect(await take(second, 'orders', 3, 15_000)).toHaveLength(3);
    await second.close();
  });

  test('settles nothing after it was suspended for longer than the server waits', async () => {
    const prefix = newPrefix();
    const engine = openNats({ url, prefix, ackWait: 400 });
    await engine.broker.declare('orders');
    await engine.broker.publish('orders', [{ id: 'e1', payload: 'a' }]);
    const [held] = await take(engine, 'orders', 1);
    // Nothing runs in this process meanwhile: no timer, no socket.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600);
    expect(await engine.broker.settle([{ lease: held!.lease, kind: 'ack' }])).toMatchObject([
      { because: 'lease_lost' },
    ]);
    // It comes again, and again if it has waited for this process as well.
    const settleAgain = async () => {
      const [again] = await take(engine, 'orders', 1);
      expect(again).toMatchObject({ id: 'e1', attempt: 1 });
      const [settled] = await engine.broker.settle([{ lease: again!.lease, kind: 'ack' }]);
      return settled!.took;
    };
    await expect.poll(settleAgain, { timeout: 10_000 }).toBe(true);
    await engine.close();
  });

  test('says in a sentence that nobody answers', async () => {
    const engine = openNats({ url: 'nats://127.0.0.1:1', connection: { maxReconnectAttempts: 0 } });
    await expect(engine.broker.declare('orders')).rejects.toThrow(/refused|ECONNREFUSED/i);
    await engine.close();
  });
});

const own = nats.missing === undefined ? await ownService('nats') : nats;

describe.skipIf(own.missing)(titled('with a server that restarts', own), () => {
  test('loses nothing, and goes on', { timeout: 60_000 }, async () => {
    if (own.missing !== undefined) return;
    const engine = openNats({ url: own.url, ackWait: '2s', timeout: '1s' });
    const { broker } = engine;
    await broker.declare('orders');
    const sent = Array.from({ length: 200 }, (_, index) => ({ id: `e${index}`, payload: `${index}` }));
    await broker.publish('orders', sent.slice(0, 100));
    const before = await take(engine, 'orders', 30);
    await broker.settle(before.slice(0, 10).map(({ lease }) => ({ lease, kind: 'ack' })));
    await own.restart('kill');
    await expect
      .poll(() => broker.publish('orders', sent.slice(100)).catch(() => []), { timeout: 20_000 })
      .toHaveLength(100);
    const done = new Set(before.slice(0, 10).map(({ id }) => id));
    for (const end = Date.now() + 30_000; done.size < 200 && Date.now() < end; ) {
      const some = await take(engine, 'orders', 50, 500).catch(() => []);
      const settled = await broker.settle(some.map(({ lease }) => ({ lease, kind: 'ack' }))).catch(() => []);
      for (const [index, { took }] of settled.entries()) if (took) done.add(some[index]!.id);
      await broker.settle(before.slice(10).map(({ lease }) => ({ lease, kind: 'return' })));
    }
    expect([...done].toSorted()).toEqual(sent.map(({ id }) => id).toSorted());
    await engine.close();
    await own.stop();
  });
});
