import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { carrierEngine } from '@holdfast/contracts/carrier';
import { memoryEngine } from '@holdfast/contracts/memory';
import { connect, type Options } from 'amqplib';
import { systemClock } from 'holdfast';
import { afterAll, describe, expect, test } from 'vitest';
import { ownService, service, titled } from '../../../scripts/services/service.ts';
import { readRabbitmqOptions } from '../src/open-rabbitmq.ts';
import { rabbitmqCarrier } from '../src/rabbitmq-carrier.ts';
import {
  ackOf,
  closeEngines,
  newTopic,
  openEngine,
  parkOf,
  payloadsOf,
  retryOf,
  take,
} from './test-engines.ts';

const rabbitmq = await service('rabbitmq');
const url = rabbitmq.missing === undefined ? rabbitmq.url : 'amqp://localhost:5672';

afterAll(closeEngines, 30_000);

async function withChannel(
  at: string,
  work: (channel: Awaited<ReturnType<typeof openChannel>>['channel']) => Promise<unknown>,
): Promise<void> {
  const { channel, connection } = await openChannel(at);
  await work(channel);
  await connection.close();
}

async function openChannel(at: string) {
  const connection = await connect(at);
  return { connection, channel: await connection.createConfirmChannel() };
}

async function send(queue: string, content: string | Buffer, options: Options.Publish = {}): Promise<void> {
  await withChannel(url, async (channel) => {
    channel.sendToQueue(queue, Buffer.from(content), options);
    await channel.waitForConfirms();
  });
}

describe.skipIf(rabbitmq.missing)(
  titled('on a server', rabbitmq),
  { timeout: 30_000, concurrent: true },
  () => {
    test('refuses key order at the start, with the sentence that says what to do', async () => {
      const engine = openEngine(url);
      await expect(engine.broker.declare(newTopic(url), { ordering: 'key' })).rejects.toThrow(
        'ordering: a retry leaves its place in the queue, and later events of its key would overtake it: give a store',
      );
    });

    test('refuses a queue that exists with other arguments, in one sentence', async () => {
      const topic = newTopic(url);
      await withChannel(url, (channel) => channel.assertQueue(topic, { durable: true }));
      await expect(openEngine(url).broker.declare(topic)).rejects.toThrow(
        /^topic ".*" has a queue with other arguments in RabbitMQ \(inequivalent arg 'x-queue-type'.*\): delete the queue when it is empty, or use another topic$/,
      );
    });

    test('refuses another ordering of a topic', async () => {
      const topic = newTopic(url);
      await openEngine(url).broker.declare(topic);
      const other = openEngine(url, { store: memoryEngine() });
      await expect(other.broker.declare(topic, { ordering: 'key' })).rejects.toThrow(
        'x-single-active-consumer',
      );
    });

    test('makes the levels of delays with another process at the same time', async () => {
      const prefix = `p${process.pid}-${systemClock.epochMs().toString(36)}`;
      const engines = Array.from({ length: 3 }, () => openEngine(url, { prefix }));
      const topic = newTopic(url);
      await Promise.all(engines.map(({ broker }) => broker.declare(topic)));
      await engines[0]!.broker.publish(topic, [{ payload: 'a', delayMs: 300 }]);
      expect(payloadsOf(await take(engines[1]!, topic, 1))).toEqual(['a']);
      await withChannel(url, async (channel) => {
        for (let level = 0; level < 20; level++) {
          await channel.deleteQueue(`${prefix}.delay.${level}`);
          await channel.deleteExchange(`${prefix}.delay.${level}`);
        }
        await channel.deleteExchange(`${prefix}.due`);
        await channel.deleteQueue(`${prefix}.topics`);
      });
    });

    test('delays each event for itself: a long one blocks none behind it, and none is early', async () => {
      const topic = newTopic(url);
      const engine = openEngine(url);
      await engine.broker.declare(topic);
      const sentAt = systemClock.epochMs();
      const delays = [1500, 100, 700, 50, 1];
      await engine.broker.publish(
        topic,
        delays.map((delayMs) => ({ payload: String(delayMs), delayMs })),
      );
      const arrived: string[] = [];
      for (const _ of delays) {
        const [event] = await take(engine, topic, 1);
        arrived.push(String(event!.payload));
        expect(systemClock.epochMs() - sentAt).toBeGreaterThanOrEqual(Number(event!.payload));
        await engine.broker.settle([ackOf(event!)]);
      }
      expect(arrived.slice(-2)).toEqual(['700', '1500']);
    });

    test('sends on what comes before it is due, such as after the longest delay', async () => {
      const topic = newTopic(url);
      const engine = openEngine(url);
      await engine.broker.declare(topic);
      const dueAt = systemClock.epochMs() + 1500;
      // As a message that has come out of the levels too early.
      await send(`${topic}.retry`, 'a', {
        headers: { 'event-id': 'e1', 'due-ts': String(dueAt), mine: 'kept' },
      });
      const [event] = await take(engine, topic, 1);
      expect(systemClock.epochMs()).toBeGreaterThanOrEqual(dueAt);
      expect(event).toMatchObject({ id: 'e1', payload: 'a', headers: { mine: 'kept' } });
      await engine.broker.settle([ackOf(event!)]);
      expect(await take(engine, topic, 1, 300)).toEqual([]);
    });

    test('reads what others publish', async () => {
      const topic = newTopic(url);
      const engine = openEngine(url);
      await engine.broker.declare(topic);
      await send(topic, 'plain', {
        messageId: 'm1',
        type: 'placed',
        headers: { n: 17, yes: true, t: { a: 1 } },
      });
      await send(topic, Buffer.from([255, 0]), { headers: { CC: [] } });
      await send(topic, '');
      const [plain, bytes, empty] = await take(engine, topic, 3);
      expect(plain).toMatchObject({ id: 'm1', payload: 'plain', type: 'placed', attempt: 1 });
      expect(plain!.headers).toEqual({ n: '17', yes: 'true', t: '{"a":1}' });
      expect(bytes).toMatchObject({ payload: new Uint8Array([255, 0]) });
      expect(empty).toMatchObject({ payload: '', originTopic: topic });
      expect(new Set([bytes!.id, empty!.id]).size).toBe(2);
      // An id that was made up stays, over retries and when it is parked.
      await engine.broker.settle([retryOf(empty!)]);
      const [again] = await take(engine, topic, 1);
      expect(again).toMatchObject({ id: empty!.id, attempt: 2 });
      await engine.broker.settle([parkOf(again!)]);
      expect(await take(engine, `${topic}.dlq`, 1)).toMatchObject([{ id: empty!.id, originTopic: topic }]);
    });

    test('reads a queue of another kind that it has not declared, also after its channel was lost', async ({
      expect,
    }) => {
      const topic = newTopic(url);
      const classic = () => withChannel(url, (channel) => channel.assertQueue(topic, { durable: true }));
      await classic();
      await withChannel(url, (channel) => channel.assertQueue(`${topic}.retry`, { durable: true }));
      await send(topic, 'a', { messageId: 'm1' });
      const engine = openEngine(url);
      const [held] = await take(engine, topic, 1);
      expect(held).toMatchObject({ id: 'm1', payload: 'a' });
      await withChannel(url, (channel) => channel.deleteQueue(topic));
      await expect.poll(() => engine.broker.extend([held!.lease], 60_000)).toEqual([false]);
      await classic();
      await send(topic, 'b');
      expect(payloadsOf(await take(engine, topic, 1))).toEqual(['b']);
    });

    test('carries names, ids and headers that AMQP would not take', async () => {
      const topic = `${newTopic(url)}.retry`;
      const engine = openEngine(url);
      await engine.broker.declare(topic);
      const headers = { CC: 'a', 'x-death': 'b', ['n'.repeat(300)]: 'c' };
      const id = 'ä'.repeat(300);
      await engine.broker.publish(topic, [{ id, payload: 'a', headers, key: 'k'.repeat(500) }]);
      const [event] = await take(engine, topic, 1);
      expect(event).toMatchObject({ id, headers, key: 'k'.repeat(500) });
      await engine.broker.settle([retryOf(event!, 100)]);
      expect(await take(engine, topic, 1)).toMatchObject([{ id, headers, attempt: 2 }]);
      expect(await engine.broker.topics()).toEqual(expect.arrayContaining([topic, `${topic}.dlq`]));
    });

    test('knows all topics, while others declare theirs', async () => {
      const topics = Array.from({ length: 8 }, () => newTopic(url));
      await Promise.all(
        topics.map(async (topic) => {
          const { broker } = openEngine(url);
          await broker.declare(topic);
          expect(await broker.topics()).toContain(topic);
        }),
      );
      expect(await openEngine(url).broker.topics()).toEqual(expect.arrayContaining(topics));
    });

    test('takes an event of the largest size', async () => {
      const topic = newTopic(url);
      const engine = openEngine(url);
      await engine.broker.declare(topic);
      const payload = 'x'.repeat(engine.broker.limits.payloadBytesMax);
      await engine.broker.publish(topic, [{ payload }]);
      const [event] = await take(engine, topic, 1);
      expect(event!.payload).toHaveLength(payload.length);
      await engine.broker.settle([ackOf(event!)]);
    });

    test('says that a queue is gone, and makes it again for the next event', async () => {
      const topic = newTopic(url);
      const engine = openEngine(url);
      await engine.broker.declare(topic);
      await withChannel(url, (channel) => channel.deleteQueue(topic));
      await expect(engine.broker.publish(topic, [{ payload: 'a' }])).rejects.toThrow(
        `RabbitMQ has no queue "${topic}": was it deleted?`,
      );
      await engine.broker.publish(topic, [{ payload: 'b' }]);
      expect(payloadsOf(await take(engine, topic, 1))).toEqual(['b']);
    });

    test('gives what it has fetched back to others when it ends', async () => {
      const topic = newTopic(url);
      const first = openEngine(url);
      await first.broker.declare(topic);
      await first.broker.publish(topic, [{ payload: 'a' }, { payload: 'b' }, { payload: 'c' }]);
      await take(first, topic, 1);
      await first.close();
      expect(payloadsOf(await take(openEngine(url), topic, 3))).toEqual(['a', 'b', 'c']);
    });

    test('shares a topic with another process: no event comes to both', async () => {
      const topic = newTopic(url);
      const [one, other] = [openEngine(url), openEngine(url)];
      await one.broker.declare(topic);
      for (const engine of [one, other]) expect(await take(engine, topic, 1, 50)).toEqual([]);
      const sent = Array.from({ length: 60 }, (_, index) => `${index}`);
      await one.broker.publish(
        topic,
        sent.map((payload) => ({ payload })),
      );
      const taken = { one: [] as unknown[], other: [] as unknown[] };
      for (const end = systemClock.now() + 15_000; systemClock.now() < end; ) {
        for (const [name, engine] of Object.entries({ one, other })) {
          const some = await take(engine, topic, 5, 30);
          taken[name as keyof typeof taken].push(...payloadsOf(some));
          await engine.broker.settle(some.map(ackOf));
        }
        if (taken.one.length + taken.other.length >= sent.length) break;
      }
      expect([...taken.one, ...taken.other].toSorted()).toEqual(sent.toSorted());
      expect(taken.one.length).toBeGreaterThan(0);
      expect(taken.other.length).toBeGreaterThan(0);
    });

    test('tells that leases are lost with their queue, and goes on with a new one', async ({ expect }) => {
      const topic = newTopic(url);
      const engine = openEngine(url);
      await engine.broker.declare(topic);
      await engine.broker.publish(topic, [{ payload: 'a' }]);
      const [held] = await take(engine, topic, 1);
      // A queue that is deleted ends its consumers. What they had is gone with it.
      await withChannel(url, (channel) => channel.deleteQueue(topic));
      await expect.poll(() => engine.broker.extend([held!.lease], 60_000)).toEqual([false]);
      expect(await engine.broker.settle([ackOf(held!)])).toMatchObject([{ because: 'lease_lost' }]);
      const publish = () => engine.broker.publish(topic, [{ payload: 'b' }]).then(() => true);
      await expect.poll(() => publish().catch(() => false)).toBe(true);
      expect(payloadsOf(await take(engine, topic, 1))).toContain('b');
    });

    test('keeps the place of what it gives back of an ordered topic', async () => {
      const topic = newTopic(url);
      const store = memoryEngine();
      const engine = openEngine(url, { store });
      await engine.broker.declare(topic, { ordering: 'key' });
      await engine.broker.publish(
        topic,
        ['a', 'b', 'c'].map((payload) => ({ payload, key: 'k' })),
      );
      const [first] = await take(engine, topic, 1);
      await engine.close();
      const next = openEngine(url, { store });
      const order: unknown[] = [];
      for (const _ of ['a', 'b', 'c']) {
        const [event] = await take(next, topic, 1);
        order.push(event!.payload);
        await next.broker.settle([ackOf(event!)]);
      }
      expect(first!.payload).toBe('a');
      expect(order).toEqual(['a', 'b', 'c']);
    });

    test('passes an ordered topic on when it is idle, and what it gives back keeps its place', async ({
      expect,
      onTestFinished,
    }) => {
      const topic = newTopic(url);
      const store = memoryEngine();
      const { carrier, rest } = readRabbitmqOptions({ url, store });
      const idle = carrierEngine(rabbitmqCarrier(carrier), { ...rest, idleMs: 100, durability: 'power' });
      onTestFinished(() => idle.close());
      await idle.broker.declare(topic, { ordering: 'key' });
      await idle.broker.publish(
        topic,
        ['a', 'b', 'c', 'd'].map((payload) => ({ payload, key: 'k' })),
      );
      const [first] = await take(idle, topic, 1);
      const other = openEngine(url, { store });
      // It has given back the others, but nobody may have them while the first one is leased.
      expect(await take(other, topic, 1, 1000)).toEqual([]);
      await idle.broker.settle([ackOf(first!)]);
      const order: unknown[] = [first!.payload];
      for (const _ of ['b', 'c', 'd']) {
        const [event] = await take(other, topic, 1);
        order.push(event?.payload);
        await other.broker.settle([ackOf(event!)]);
      }
      expect(order).toEqual(['a', 'b', 'c', 'd']);
    });

    test('says in a sentence that nobody answers', async () => {
      const engine = openEngine('amqp://user:secret@127.0.0.1:1');
      await expect(engine.broker.declare('orders')).rejects.toThrow(
        'no connection to RabbitMQ at 127.0.0.1:1: connect ECONNREFUSED',
      );
    });
  },
);

const alarmed = rabbitmq.missing === undefined ? await alarmedServer() : rabbitmq;

/** A server that is always short of memory, with a user who may not create anything. */
async function alarmedServer() {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-rabbitmq-'));
  const file = path.join(folder, 'definitions.json');
  const users = ['guest', 'reader'].map((name) => ({ name, password_hash: hashOf(name), tags: '' }));
  const permissions = users.map(({ name: user }) => ({
    ...{ user, vhost: '/', configure: user === 'guest' ? '.*' : '^$', write: '.*', read: '.*' },
  }));
  await writeFile(file, JSON.stringify({ vhosts: [{ name: '/' }], users, permissions }));
  const settings = { 'vm_memory_high_watermark.absolute': '1MB', load_definitions: file };
  return ownService('rabbitmq', { settings }).finally(() => rm(folder, { recursive: true }));
}

/** As RabbitMQ keeps passwords: a salt, and the hash of both. */
function hashOf(password: string): string {
  const salt = Buffer.from([1, 2, 3, 4]);
  const hash = createHash('sha256').update(salt).update(password).digest();
  return Buffer.concat([salt, hash]).toString('base64');
}

describe.skipIf(alarmed.missing)(titled('a server of its own', alarmed), { timeout: 60_000 }, () => {
  afterAll(async () => {
    if (alarmed.missing === undefined) await alarmed.stop();
  }, 60_000);
  const at = alarmed.missing === undefined ? alarmed.url : url;
  const quorum = { 'x-queue-type': 'quorum', 'x-delivery-limit': 1_000_000_000 };

  test('that is short of memory lets publishers wait, and then says why they fail', async () => {
    await withChannel(at, (channel) => channel.assertQueue('orders', { durable: true, arguments: quorum }));
    const engine = openEngine(at, { timeout: '1s' });
    for (const _ of ['the first', 'the next one, which knows']) {
      const published = engine.broker.publish('orders', [{ payload: 'a' }]);
      await expect(published).rejects.toThrow(
        'RabbitMQ took no messages for 1000 ms, because of an alarm (low on memory)',
      );
    }
    // Reading goes on meanwhile.
    expect(await take(engine, 'orders', 1, 100)).toEqual([]);
  });

  test('without the right to create a queue, the command to run is in the error', async () => {
    const engine = openEngine(at.replace('guest:guest', 'reader:reader'));
    const command = (queue: string) =>
      `RabbitMQ does not let this user create the queue "${queue}": create it with rabbitmqadmin --vhost='/' declare queue name='${queue}' durable=true arguments='${JSON.stringify(quorum)}'`;
    await expect(engine.broker.declare('bills')).rejects.toThrow(command('bills'));
    // One that somebody else has created is used.
    await withChannel(at, (channel) => channel.assertQueue('bills', { durable: true, arguments: quorum }));
    await expect(engine.broker.declare('bills')).rejects.toThrow(command('bills.retry'));
  });
});
