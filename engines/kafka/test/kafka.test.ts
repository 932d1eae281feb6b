import type { Settlement } from '@holdfast/contracts';
import { carrierEngine } from '@holdfast/contracts/carrier';
import { memoryEngine } from '@holdfast/contracts/memory';
import { openKafka } from '@holdfast/kafka';
import { sleep, systemClock } from 'holdfast';
import { afterAll, describe, expect, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { kafkaCarrier } from '../src/kafka-carrier.ts';
import { KafkaClient, type Line } from '../src/kafka-client.ts';
import { readOptions } from '../src/kafka-options.ts';
import { ensureTopics } from '../src/kafka-topics.ts';
import type { KafkaHandle } from '../src/partition-window.ts';
import { TopicReader } from '../src/topic-reader.ts';
import { quick } from './kafka-harness.ts';
import {
  ackOf,
  closeEngines,
  newName,
  openEngine,
  parkOf,
  payloadsOf,
  retryOf,
  take,
} from './test-engines.ts';

const kafka = await service('kafka');
const url = kafka.missing === undefined ? kafka.url : 'kafka://localhost';

describe.skipIf(kafka.missing)(titled('Kafka', kafka), { concurrent: true, timeout: 60_000 }, () => {
  afterAll(closeEngines);

  describe('progress', () => {
    test('what is done behind an unfinished event does not come again', async () => {
      const [topic, group] = [newName('orders'), newName('g')];
      const first = openEngine(url, { group });
      await first.broker.declare(topic);
      await first.broker.publish(
        topic,
        ['a', 'b', 'c', 'd'].map((payload) => ({ payload })),
      );
      const [, b, , d] = await take(first, topic, 4);
      await first.broker.settle([ackOf(b!), ackOf(d!)]);
      await first.close();

      const second = openEngine(url, { group });
      expect(payloadsOf(await take(second, topic, 2))).toEqual(['a', 'c']);
      expect(payloadsOf(await take(second, topic, 1, 1000))).toEqual([]);
    });

    test('a process that dies between the publish of a retry and its commit leaves both', async () => {
      const [topic, group] = [newName('orders'), newName('g')];
      const carrier = kafkaCarrier(readOptions({ ...quick, url, group, partitions: 1 }), false);
      const dying = carrierEngine(
        Object.assign(carrier, {
          async done(): Promise<boolean[]> {
            throw new Error('the process has died');
          },
        }),
        { durability: 'process' },
      );
      await dying.broker.declare(topic);
      await dying.broker.publish(topic, [{ id: 'e1', payload: 'a', key: 'k' }]);
      const [held] = await take(dying, topic, 1);
      await expect(dying.broker.settle([retryOf(held!)])).rejects.toThrow('died');
      await dying.close();

      const next = openEngine(url, { group });
      const both = await take(next, topic, 2);
      expect(both.map(({ id, attempt, key }) => [id, attempt, key]).sort()).toEqual([
        ['e1', 1, 'k'],
        ['e1', 2, 'k'],
      ]);
      await next.broker.settle(both.map(ackOf));
      expect(await next.broker.counts(topic)).toMatchObject({ ready: 0, delayed: 0, leased: 0 });
    });
  });

  describe('fetches', () => {
    test('bring each record once', async () => {
      const [topic, group] = [newName('orders'), newName('g')];
      const count = 6000;
      const { broker } = openEngine(url, { partitions: 3 });
      await broker.declare(topic);
      const payload = 'x'.repeat(1000);
      for (let at = 0; at < count; at += 1000)
        await broker.publish(
          topic,
          Array.from({ length: 1000 }, () => ({ payload })),
        );

      let fetched = 0;
      class CountingClient extends KafkaClient {
        override newLine(): Line {
          const { request, close } = super.newLine();
          return {
            close,
            async request<Response>(...[node, api, args]: Parameters<Line['request']>) {
              const answer = await request<Response>(node, api, args);
              if (api === 'Fetch') fetched += recordsIn(answer as FetchAnswer);
              return answer;
            },
          };
        }
      }
      const client = new CountingClient(readOptions({ ...quick, url, group }).connection);
      const arrived: KafkaHandle[] = [];
      const reader = new TopicReader({
        ...{ client, clock: systemClock, group, sessionTimeoutMs: 6000, rebalanceTimeoutMs: 5000 },
        listener: {
          arrived: (arrivals) => arrived.push(...arrivals.map(({ handle }) => handle)),
          lost: () => expect.unreachable(),
        },
        topics: async () => [topic],
        timeOf: () => ({ dueAt: 0 }),
        sendAgain: () => expect.unreachable(),
        onError: () => expect.unreachable(),
      });
      const offsets = new Set<string>();
      while (offsets.size < count) {
        reader.credit(500);
        if (arrived.length === 0) await reader.look();
        const handles = arrived.splice(0);
        for (const { record } of handles) offsets.add(`${record.partition}/${record.offset}`);
        await reader.done(handles);
      }
      await reader.close();
      await client.close();
      expect(fetched).toBe(count);
    });
  });

  describe('groups', () => {
    test('members that join and leave under load lose nothing, and no event is done twice', async () => {
      const [topic, group] = [newName('orders'), newName('g')];
      const options = { group, partitions: 4 };
      const first = openEngine(url, options);
      await first.broker.declare(topic);
      const ids = Array.from({ length: 400 }, (_, index) => `e${index}`);
      await first.broker.publish(
        topic,
        ids.map((id) => ({ id, payload: id, key: id })),
      );
      const acked = new Map<string, number>();
      const end = systemClock.now() + 40_000;
      const work = async (engine: typeof first, until: () => boolean) => {
        while (!until() && systemClock.now() < end) {
          const deliveries = await take(engine, topic, 20, 200);
          await sleep(systemClock, 10);
          const results = await engine.broker.settle(deliveries.map(ackOf));
          for (const [index, { id }] of deliveries.entries())
            if (results[index]!.took) acked.set(id, (acked.get(id) ?? 0) + 1);
        }
      };
      const isDone = () => acked.size === ids.length;
      const joiners = async () => {
        for (let turn = 0; turn < 4 && !isDone(); turn++) {
          const other = openKafka({ ...quick, url, ...options });
          const leavesAt = systemClock.now() + 1500;
          await work(other, () => isDone() || systemClock.now() > leavesAt);
          await other.close();
        }
      };
      await Promise.all([work(first, isDone), joiners()]);

      expect(acked.size).toBe(ids.length);
      // Another process that had it, too, was told that its lease is lost.
      expect([...acked.values()].every((count) => count === 1)).toBe(true);
      expect(await first.broker.counts(topic)).toMatchObject({ ready: 0, leased: 0 });
    });

    test('a retry is for the group that failed, and a delayed event for all', async () => {
      const topic = newName('orders');
      const shipping = openEngine(url, { group: newName('shipping') });
      const billing = openEngine(url, { group: newName('billing') });
      await shipping.broker.declare(topic);
      await shipping.broker.publish(topic, [{ payload: 'now' }]);
      const [failed] = await take(shipping, topic, 1);
      await shipping.broker.settle([retryOf(failed!)]);
      await shipping.broker.publish(topic, [{ payload: 'later', delayMs: 300 }]);
      const again = await take(shipping, topic, 2);
      expect(again.map(({ payload, attempt }) => [payload, attempt]).sort()).toEqual([
        ['later', 1],
        ['now', 2],
      ]);
      const others = await take(billing, topic, 2);
      expect(others.map(({ payload, attempt }) => [payload, attempt]).sort()).toEqual([
        ['later', 1],
        ['now', 1],
      ]);
      expect(await take(billing, topic, 1, 1500)).toEqual([]);
      expect(again.every(({ headers }) => Object.keys(headers).length === 0)).toBe(true);
    });
  });

  describe('delays', () => {
    test('a delay that is much longer than the last tier is kept, also over a restart', async () => {
      const [topic, group] = [newName('orders'), newName('g')];
      const options = { group, tiers: ['100ms', '300ms'] } as const;
      const first = openEngine(url, options);
      await first.broker.declare(topic);
      const publishedAt = systemClock.epochMs();
      await first.broker.publish(topic, [{ payload: 'a', delayMs: 3000, headers: { x: 'y' } }]);
      expect(await take(first, topic, 1, 1000)).toEqual([]);
      await first.close();

      const second = openEngine(url, options);
      const [late] = await take(second, topic, 1);
      expect(systemClock.epochMs()).toBeGreaterThanOrEqual(publishedAt + 3000);
      expect(late).toMatchObject({ payload: 'a', headers: { x: 'y' }, attempt: 1 });
      expect(late!.firstSeenAt).toBeGreaterThanOrEqual(publishedAt);
      expect(late!.firstSeenAt).toBeLessThan(publishedAt + 1000);
    });

    test('a long delay does not hold back a short one of the same tier', async () => {
      const topic = newName('orders');
      const engine = openEngine(url, { group: newName('g'), tiers: ['100ms'] });
      await engine.broker.declare(topic);
      await engine.broker.publish(topic, [{ payload: 'long', delayMs: 60_000 }]);
      await engine.broker.publish(topic, [{ payload: 'short', delayMs: 150 }]);
      expect(payloadsOf(await take(engine, topic, 1))).toEqual(['short']);
    });

    test('a sweep deletes retries that are done', async () => {
      const [topic, group] = [newName('orders'), newName('g')];
      const engine = openEngine(url, { group });
      await engine.broker.declare(topic);
      await engine.broker.publish(topic, [{ payload: 'a' }, { payload: 'b' }]);
      await engine.broker.settle((await take(engine, topic, 2)).map((each) => retryOf(each)));
      const [done, kept] = await take(engine, topic, 2);
      await engine.broker.settle([ackOf(done!)]);

      expect(await engine.sweep(1000)).toBeGreaterThanOrEqual(1);
      await engine.broker.settle([{ lease: kept!.lease, kind: 'return' }]);
      await engine.close();
      const next = openEngine(url, { group });
      expect(payloadsOf(await take(next, topic, 1))).toEqual([kept!.payload]);
    });
  });

  describe('topics', () => {
    const client = new KafkaClient(readOptions({ url }).connection);
    afterAll(() => client.close());
    const defaults = { partitions: 2, replication: 1, mayCreate: true, bootstrapServer: 'k:9092' };
    const create = (name: string, retentionMs: number) =>
      ensureTopics(client, systemClock, [{ name, partitions: 2, retentionMs, retentionMinMs: 0 }], defaults);

    test.each<[string, object, RegExp]>([
      [
        'more partitions than there are',
        { partitions: 5 },
        /has 2 partitions, and 5 are wanted.*--alter --topic \S+ --partitions 5/,
      ],
      ['fewer partitions', { partitions: 1 }, /set the option "partitions" to 2/],
      [
        'no tiers, and none may be created',
        { partitions: 2, createTopics: false },
        /createTopics is false.*kafka-topics.sh --bootstrap-server \S+ --create --topic \S+\.retry\.200ms --partitions 2 --config retention.ms=-1/,
      ],
    ])('%s: the command to run is in the error', async (_, options, sentence) => {
      const topic = newName('orders');
      await create(topic, -1);
      await expect(openEngine(url, options).broker.declare(topic)).rejects.toThrow(sentence);
    });

    test('a tier that keeps events for a shorter time than they wait is refused', async () => {
      const topic = newName('orders');
      await create(`${topic}.retry.1s`, 1000);
      await expect(openEngine(url, { partitions: 2 }).broker.declare(topic)).rejects.toThrow(
        /keeps events for 1000 ms.*kafka-configs.sh .*--add-config retention.ms=-1/,
      );
    });

    test('key order is refused without a store, with the reason', async () => {
      const engine = openEngine(url);
      await expect(engine.broker.declare(newName('orders'), { ordering: 'key' })).rejects.toThrow(
        'a retry leaves its place in the queue, and later events of its key would overtake it: give a store',
      );
    });

    test('a name that Kafka does not take is refused', async () => {
      await expect(openEngine(url).broker.declare('orders/new')).rejects.toThrow('orders/new');
    });

    test('lists topics without their tiers', async () => {
      const topic = newName('orders');
      const engine = openEngine(url);
      await engine.broker.declare(topic);
      const topics = await engine.broker.topics();
      expect(topics.filter((name) => name.startsWith(topic))).toEqual([topic, `${topic}.dlq`]);
    });
  });

  describe('history', () => {
    test('reads from a time, or from offsets, in pages, in the order of publication', async () => {
      const topic = newName('orders');
      const engine = openEngine(url, { partitions: 3, group: newName('g') });
      await engine.broker.declare(topic, { keepSettledMs: 60_000 });
      const names = Array.from({ length: 12 }, (_, index) => `e${index}`);
      let from = 0;
      for (const [index, name] of names.entries()) {
        if (index === 5) from = systemClock.epochMs();
        await engine.broker.publish(topic, [{ payload: name, key: name }]);
        await sleep(systemClock, 3);
      }
      const settled = await take(engine, topic, 12);
      await engine.broker.settle(settled.map(ackOf));

      const read: unknown[] = [];
      let cursor: string | undefined;
      do {
        const page = await engine.broker.history(topic, { limit: 3, from, ...(cursor && { cursor }) });
        read.push(...page.items.map(({ payload }) => payload));
        cursor = page.cursor;
      } while (cursor !== undefined);
      expect(read).toEqual(names.slice(5));
      const all = await engine.broker.history(topic, { limit: 100, cursor: '0:0,1:0,2:0' });
      expect(all.items.map(({ payload }) => payload)).toEqual(names);
      await expect(engine.broker.history(topic, { limit: 1, cursor: 'x' })).rejects.toThrow('0:17,1:230');
    });
  });

  describe('with a store', () => {
    test('later events of a key wait for its retry, and other keys flow', async () => {
      const topic = newName('orders');
      const engine = openEngine(url, { partitions: 2, group: newName('g'), store: memoryEngine() });
      await engine.broker.declare(topic, { ordering: 'key' });
      const events = ['a1', 'a2', 'b1', 'a3'].map((payload) => ({ payload, key: payload[0]! }));
      await engine.broker.publish(topic, events);
      const [one, two] = await take(engine, topic, 2);
      const a1 = one!.payload === 'a1' ? one! : two!;
      const b1 = one!.payload === 'a1' ? two! : one!;
      await engine.broker.settle([retryOf(a1, 200), ackOf(b1)]);
      const order: unknown[] = [];
      for (let step = 0; step < 3; step++) {
        const [next] = await take(engine, topic, 1);
        order.push(next!.payload);
        await engine.broker.settle([ackOf(next!)]);
      }
      expect(order).toEqual(['a1', 'a2', 'a3']);
    });

    test('a parked event is in the triage of the store', async () => {
      const topic = newName('orders');
      const engine = openEngine(url, { group: newName('g'), store: memoryEngine() });
      await engine.broker.declare(topic);
      const [published] = await engine.broker.publish(topic, [{ payload: 'a' }]);
      const [held] = await take(engine, topic, 1);
      await engine.broker.settle([parkOf(held!)]);
      expect(await engine.triage!.get(published!.id)).toMatchObject({ payload: 'a', topic });
    });
  });

  test('a process that was thought dead is refused, and the work of its successor stands', async () => {
    const [topic, group] = [newName('orders'), newName('g')];
    const carrier = kafkaCarrier(readOptions({ ...quick, url, group, partitions: 1 }), false);
    const zombie = carrierEngine(carrier, { durability: 'process' });
    await zombie.broker.declare(topic);
    await zombie.broker.publish(topic, [{ payload: 'a' }, { payload: 'b' }]);
    const held = await take(zombie, topic, 2);

    const admin = new KafkaClient(readOptions({ url }).connection);
    const node = await admin.coordinatorOf(`${group}.${topic}`);
    const { groups } = await admin.request<{ groups: { members: { memberId: string }[] }[] }>(
      'DescribeGroups',
      [[`${group}.${topic}`], false],
      node,
    );
    // An operator, or the end of its session, removes the member.
    const members = groups[0]!.members.map(({ memberId }) => ({
      memberId,
      groupInstanceId: null,
      reason: null,
    }));
    await admin.request('LeaveGroup', [`${group}.${topic}`, members], node);
    await admin.close();

    const results = await zombie.broker.settle(held.map((each): Settlement => ackOf(each)));
    expect(results.map(({ took }) => took)).toEqual([false, false]);
    expect(payloadsOf(await take(zombie, topic, 2))).toEqual(['a', 'b']);
    await zombie.close();
  });
});

interface FetchAnswer {
  readonly responses: readonly {
    readonly partitions: readonly {
      readonly records: readonly { readonly records: readonly object[] }[] | null;
    }[];
  }[];
}

function recordsIn({ responses }: FetchAnswer): number {
  const batches = responses.flatMap(({ partitions }) => partitions.flatMap(({ records }) => records ?? []));
  return batches.reduce((sum, { records }) => sum + records.length, 0);
}
