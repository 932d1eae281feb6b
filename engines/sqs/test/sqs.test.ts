import { CreateQueueCommand, GetQueueAttributesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { memoryEngine } from '@holdfast/contracts/memory';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { batchesOf, roundsOf } from '../src/batches.ts';
import { openSqs, type SqsOptions } from '../src/index.ts';
import { QueueNames } from '../src/queue-names.ts';
import { decodeMessage, encodeMessage, messageBytesMax } from '../src/sqs-message.ts';
import { access } from './sqs-harness.ts';
import { ackOf, closeEngines, newPrefix, openEngine, parkOf, retryOf, take } from './test-engines.ts';

const elasticmq = await service('elasticmq');
const endpoint = elasticmq.missing === undefined ? elasticmq.url : 'http://localhost:9324';
const client = new SQSClient({ ...access, endpoint });

afterAll(async () => {
  if (elasticmq.missing === undefined) await closeEngines();
  client.destroy();
}, 30_000);

describe('options', () => {
  test.each<[object, string]>([
    [{ endpoint: 'localhost:9324' }, 'http://localhost:9324'],
    [{ region: '' }, 'region'],
    [{ prefix: 'a.b' }, 'letters, digits, hyphens and low lines'],
    [{ visibility: '500ms' }, 'a time of whole seconds, from 1 s to 3600 s'],
    [{ visibility: '2h' }, 'visibility'],
    [{ waitTime: '21s' }, 'waitTime'],
    [{ waitTime: 0 }, 'waitTime'],
    [{ retention: '15d' }, 'retention'],
    [{ receivesMax: 0 }, 'a whole number from 1 to 50'],
    [{ createQueues: 'no' }, 'createQueues'],
    [{ attributes: { KmsMasterKeyId: 1 } }, 'texts by their names'],
    [{ timeout: 0 }, 'timeout'],
    [{ client: {} }, 'an SQSClient of @aws-sdk/client-sqs'],
    [{ client, region: 'eu-central-1' }, 'nothing beside a client'],
    [{ onError: 'log' }, 'onError'],
    [{ parkedSuffix: '' }, 'parkedSuffix'],
    [{ prefetchMax: 1.5 }, 'prefetchMax'],
    [{ limits: { payloadBytesMax: 0 } }, 'payloadBytesMax'],
    [{ visibilityTimeout: '30s' }, 'visibilityTimeout'],
    [{ store: { name: 'redis' } }, 'an engine that keeps the order of keys'],
  ])('%o is refused with a sentence', (options, sentence) => {
    expect(() => openSqs({ ...access, ...options } as SqsOptions)).toThrow(sentence);
  });

  test('say what is missing without a store', async () => {
    const { features, durability, ...engine } = openSqs(access);
    expect(durability).toBe('power');
    expect(features.ordering).toEqual({ missing: expect.stringContaining('give a store') });
    expect(features.anyDelay).toEqual({ missing: 'SQS delays by whole seconds' });
    await expect(engine.broker!.history('orders', { limit: 1 })).rejects.toThrow('retention');
    await engine.close();
    const withStore = openSqs({ ...access, store: memoryEngine() });
    expect(withStore.features).toMatchObject({ ordering: true, quarantine: true, parksInTriage: true });
    await withStore.close();
  });
});

const text = fc.string({ unit: 'binary' }).map((each) => each.toWellFormed());

describe('names', () => {
  const names = new QueueNames('app-');
  const sign = fc.constantFrom('.', '_', '-', 'x', 'a', '_x', '-retry', '.dlq', '.fifo', 'ü', ' ');

  test('are names of SQS, and topics come back from them', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          text,
          fc.array(sign).map((each) => each.join('')),
        ),
        fc.boolean(),
        (topic, isFifo) => {
          const name = names.nameOf(topic, 'hot', isFifo);
          expect(name).toMatch(/^[\w-]+(\.fifo)?$/);
          expect(names.topicOf(name)).toBe(topic);
          expect(names.topicOf(names.nameOf(topic, 'retry'))).toBeUndefined();
        },
      ),
    );
  });

  test('stay as people write them', () => {
    const plain = new QueueNames('');
    expect(plain.nameOf('my_orders-eu', 'hot')).toBe('my_orders-eu');
    expect(plain.nameOf('orders', 'retry')).toBe('orders-retry');
    expect(plain.nameOf('orders.dlq', 'hot')).toBe('orders__dlq');
    expect(plain.nameOf('orders', 'hot', true)).toBe('orders.fifo');
    expect(names.topicOf('others')).toBeUndefined();
  });
});

describe('messages', () => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: SQS refuses these.
  const refused = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/;
  const payload = fc.oneof(text, fc.uint8Array());
  const headers = fc.dictionary(
    text.filter((name) => name !== '__proto__'),
    text,
  );

  test('come back as they went, and have only what SQS takes', () => {
    fc.assert(
      fc.property(payload, headers, (given, wire) => {
        const { body, attributes, bytes } = encodeMessage({ payload: given, headers: wire });
        expect(body).not.toBe('');
        for (const each of [body, ...Object.values(attributes).map(({ StringValue }) => StringValue!)])
          expect(each).not.toMatch(refused);
        expect(bytes).toBeGreaterThan(body.length);
        const read = decodeMessage({ Body: body, MessageAttributes: attributes });
        expect(read.headers).toEqual(wire);
        expect(Buffer.from(read.payload as string)).toEqual(Buffer.from(given as string));
        if (typeof read.payload === 'string') expect(typeof given).toBe('string');
      }),
    );
  });

  test('that are too large go without their story, then without their error, then not at all', () => {
    const large = 'x'.repeat(messageBytesMax - 2000);
    const story = { 'event-id': 'e1', 'retry-story': 's'.repeat(1500), 'last-error': 'e'.repeat(1000) };
    const read = ({ attributes }: ReturnType<typeof encodeMessage>) =>
      Object.keys(JSON.parse(attributes.holdfast!.StringValue!));
    expect(read(encodeMessage({ payload: 'x', headers: story }))).toHaveLength(3);
    expect(read(encodeMessage({ payload: large, headers: story }))).toEqual(['event-id', 'last-error']);
    const larger = 'x'.repeat(messageBytesMax - 500);
    expect(read(encodeMessage({ payload: larger, headers: story }))).toEqual(['event-id']);
    expect(() => encodeMessage({ payload: `${larger}${larger}`, headers: story })).toThrow(
      `at most ${messageBytesMax} is taken`,
    );
    expect(() => encodeMessage({ payload: new Uint8Array(700_001), headers: {} })).toThrow(
      'a payload of bytes, in bytes, is 700001, and at most 700000 is taken',
    );
    expect(() => encodeMessage({ payload: `\0${'x'.repeat(700_000)}`, headers: {} })).toThrow(
      'a payload of text with characters that SQS refuses, in bytes, is 700001',
    );
  });

  test('that strangers sent with our attribute, but without our JSON, keep it as a header', () => {
    const MessageAttributes = { holdfast: { DataType: 'String', StringValue: 'yes' } };
    expect(decodeMessage({ Body: 'a', MessageAttributes }).headers).toEqual({ holdfast: 'yes' });
  });
});

describe('batches', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: messageBytesMax }), { maxLength: 60 });

  test('have at most 10 entries and 1 MiB, and all entries in their order', () => {
    fc.assert(
      fc.property(sizes, (entries) => {
        const batches = batchesOf(entries, (size) => size);
        expect(batches.flat()).toEqual(entries);
        for (const batch of batches) {
          expect(batch.length).toBeLessThanOrEqual(10);
          expect(batch.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(messageBytesMax);
        }
      }),
    );
  });

  test('of groups have each group once in a round, in the order of the group', () => {
    const grouped = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat()));
    fc.assert(
      fc.property(grouped, (entries) => {
        const rounds = roundsOf(entries, ([group]) => group);
        for (const round of rounds) expect(new Set(round.map(([group]) => group)).size).toBe(round.length);
        for (const group of ['a', 'b', 'c']) {
          const of = (some: readonly (readonly [string, number])[]) =>
            some.filter(([name]) => name === group);
          expect(of(rounds.flat())).toEqual(of(entries));
        }
      }),
    );
  });
});

describe.skipIf(elasticmq.missing).concurrent(titled('on a server', elasticmq), { timeout: 40_000 }, () => {
  async function createQueue(QueueName: string, Attributes: Record<string, string> = {}): Promise<string> {
    return (await client.send(new CreateQueueCommand({ QueueName, Attributes }))).QueueUrl!;
  }

  test('refuses key order at the start, with the sentence that says what to do', async () => {
    const engine = openEngine(endpoint, { prefix: newPrefix(endpoint) });
    await expect(engine.broker.declare('orders', { ordering: 'key' })).rejects.toThrow(
      'ordering: a retry leaves its place in the queue, and later events of its key would overtake it: give a store',
    );
  });

  test('creates queues with its attributes, and none for retries beside a store', async () => {
    const prefix = newPrefix(endpoint);
    const engine = openEngine(endpoint, { prefix, visibility: '7s' });
    await engine.broker.declare('orders');
    expect((await engine.broker.topics()).toSorted()).toEqual(['orders', 'orders.dlq']);
    const QueueUrl = await createQueue(`${prefix}orders-retry`, { VisibilityTimeout: '7' });
    const { Attributes } = await client.send(
      new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] }),
    );
    expect(Attributes).toMatchObject({ VisibilityTimeout: '7' });
    const withStore = openEngine(endpoint, { prefix: `${prefix}s-`, store: memoryEngine() });
    expect(await withStore.broker.declare('orders', { ordering: 'key' })).toMatchObject({ ordering: 'key' });
    expect(await withStore.broker.topics()).toEqual(['orders']);
  });

  test('says the command to run, if it must not create queues', async () => {
    const prefix = newPrefix(endpoint);
    const engine = openEngine(endpoint, { prefix, createQueues: false });
    await expect(engine.broker.declare('orders')).rejects.toThrow(
      `there is no queue ${prefix}orders, and createQueues is false: run aws sqs create-queue --queue-name ${prefix}orders`,
    );
    await expect(engine.broker.publish('orders', [{ payload: 'a' }])).rejects.toThrow('was never declared');
  });

  test('says what is wrong with queues that exist in another form', async () => {
    const prefix = newPrefix(endpoint);
    const store = () => memoryEngine();
    await createQueue(`${prefix}plain`);
    await createQueue(`${prefix}ordered.fifo`, { FifoQueue: 'true' });
    await createQueue(`${prefix}both`);
    await createQueue(`${prefix}both.fifo`, { FifoQueue: 'true' });
    const bare = openEngine(endpoint, { prefix });
    const stored = openEngine(endpoint, { prefix, store: store() });
    await expect(stored.broker.declare('plain', { ordering: 'key' })).rejects.toThrow(
      `is the standard queue ${prefix}plain, and SQS cannot change that`,
    );
    await expect(stored.broker.declare('ordered')).rejects.toThrow('is the FIFO queue');
    await expect(stored.broker.declare('both')).rejects.toThrow('has two queues');
    await expect(bare.broker.declare('ordered')).rejects.toThrow(
      'give a store, which keeps the order of keys',
    );
    await expect(bare.broker.declare('x'.repeat(81))).rejects.toThrow('80 characters');
  });

  test('refuses a redrive policy on the retry queue, and takes one on the other', async () => {
    const prefix = newPrefix(endpoint);
    await createQueue(`${prefix}dead`);
    const deadLetterTargetArn = `arn:aws:sqs:elasticmq:000000000000:${prefix}dead`;
    const RedrivePolicy = JSON.stringify({ deadLetterTargetArn, maxReceiveCount: 3 });
    await createQueue(`${prefix}good`, { RedrivePolicy });
    await createQueue(`${prefix}bad-retry`, { RedrivePolicy });
    const engine = openEngine(endpoint, { prefix });
    await engine.broker.declare('good');
    await expect(engine.broker.declare('bad')).rejects.toThrow(`has a redrive policy on ${prefix}bad-retry`);
  });

  test('keeps any text and bytes, and refuses what is too large by name', async () => {
    const engine = openEngine(endpoint, { prefix: newPrefix(endpoint) });
    await engine.broker.declare('orders');
    const given = [
      'tab\t, line\n, return\r, nul\0, \ufffe, \u{1f980}',
      '',
      new Uint8Array([0, 255]),
      new Uint8Array(0),
    ];
    const large = ['x'.repeat(983_040), new Uint8Array(700_000).fill(7)];
    const sent = [...given, ...large].map((payload, index) => ({ id: `e${index}`, payload }));
    await engine.broker.publish('orders', sent);
    const taken = await take(engine, 'orders', sent.length);
    // A retry has more headers, and still fits.
    await engine.broker.settle(taken.map((each) => retryOf(each)));
    const again = await take(engine, 'orders', sent.length);
    for (const { id, payload } of sent)
      expect(again.find((each) => each.id === id)?.payload, id).toEqual(payload);
    await expect(engine.broker.publish('orders', [{ payload: 'x'.repeat(983_041) }])).rejects.toThrow(
      'events[0].payload in bytes is 983041, and at most 983040 is taken',
    );
    const batch = [{ id: 'small', payload: 'a' }, { payload: new Uint8Array(700_001) }];
    await expect(engine.broker.publish('orders', batch)).rejects.toThrow('at most 700000 is taken');
    await engine.broker.settle(again.map(ackOf));
    expect(await take(engine, 'orders', 1, 300)).toEqual([]);
  });

  test('delays by whole seconds, and never too short', async () => {
    const engine = openEngine(endpoint, { prefix: newPrefix(endpoint) });
    await engine.broker.declare('orders');
    await engine.broker.publish('orders', [{ payload: 'a' }]);
    const [first] = await take(engine, 'orders', 1);
    const dueAt = Date.now() + 1200;
    await engine.broker.settle([retryOf(first!, 1200)]);
    expect(await engine.broker.counts('orders')).toMatchObject({ ready: 0, delayed: 1 });
    const [second] = await take(engine, 'orders', 1);
    expect(Date.now()).toBeGreaterThanOrEqual(dueAt);
    expect(second).toMatchObject({ attempt: 2, nextDelayMs: 1200 });
  });

  test('gives what it has fetched back to others when it ends', async () => {
    const prefix = newPrefix(endpoint);
    const first = openEngine(endpoint, { prefix, visibility: '1h' });
    await first.broker.declare('orders');
    await first.broker.publish('orders', [{ payload: 'a' }, { payload: 'b' }, { payload: 'c' }]);
    await take(first, 'orders', 1);
    await first.close();
    const second = openEngine(endpoint, { prefix });
    expect(await take(second, 'orders', 3)).toHaveLength(3);
  });

  test('handles what the retry queue still has after a store was given', async () => {
    const prefix = newPrefix(endpoint);
    const before = openEngine(endpoint, { prefix });
    await before.broker.declare('orders');
    await before.broker.publish('orders', [{ id: 'e1', payload: 'a' }]);
    await before.broker.settle((await take(before, 'orders', 1)).map((each) => retryOf(each)));
    await before.close();
    const after = openEngine(endpoint, { prefix, store: memoryEngine() });
    await after.broker.declare('orders');
    expect(await take(after, 'orders', 1)).toMatchObject([{ id: 'e1', attempt: 2 }]);
  });

  test('keeps the order of keys across a retry, with a store', async () => {
    const engine = openEngine(endpoint, { prefix: newPrefix(endpoint), store: memoryEngine() });
    await engine.broker.declare('orders', { ordering: 'key' });
    const payloads = ['a1', 'b1', 'a2', 'a3', 'b2'];
    await engine.broker.publish(
      'orders',
      payloads.map((payload) => ({ payload, key: payload[0]! })),
    );
    const handled: string[] = [];
    for (let rounds = 0; handled.length < payloads.length && rounds < 100; rounds++) {
      const some = await take(engine, 'orders', 2, 200);
      const isRetried = some.map(({ payload, attempt }) => payload === 'a1' && attempt === 1);
      await engine.broker.settle(
        some.map((each, index) => (isRetried[index] ? retryOf(each, 100) : ackOf(each))),
      );
      handled.push(...some.filter((_, index) => !isRetried[index]).map(({ payload }) => payload as string));
    }
    expect(handled.filter((payload) => payload.startsWith('a'))).toEqual(['a1', 'a2', 'a3']);
    expect(handled.filter((payload) => payload.startsWith('b'))).toEqual(['b1', 'b2']);
  });

  test('parks into a topic of its own, which can be handled and parked again', async () => {
    const engine = openEngine(endpoint, { prefix: newPrefix(endpoint) });
    await engine.broker.declare('orders');
    await engine.broker.publish('orders', [{ id: 'e1', payload: 'a' }]);
    await engine.broker.settle((await take(engine, 'orders', 1)).map(parkOf));
    const [parked] = await take(engine, 'orders.dlq', 1);
    expect(parked).toMatchObject({ id: 'e1', originTopic: 'orders', diagnosis: { reason: 'TypeError' } });
    await engine.broker.settle([parkOf(parked!)]);
    expect(await take(engine, 'orders.dlq', 1)).toMatchObject([{ id: 'e1' }]);
  });

  test('says in a sentence that nobody answers', async () => {
    const engine = openEngine('http://127.0.0.1:1', { timeout: '1s' });
    await expect(engine.broker.declare('orders')).rejects.toThrow(/ECONNREFUSED/);
  });
});
