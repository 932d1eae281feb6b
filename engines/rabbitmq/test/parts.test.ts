import { reservedHeaders } from '@holdfast/contracts';
import { memoryEngine } from '@holdfast/contracts/memory';
import { openRabbitmq, type RabbitmqOptions } from '@holdfast/rabbitmq';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AckWindow } from '../src/ack-window.ts';
import { delayMaxMs, Ladder } from '../src/ladder.ts';
import { decodeHeaders, encodeHeaders } from '../src/message-text.ts';
import { Names } from '../src/names.ts';

const url = 'amqp://localhost:5672';
const text = fc.string({ unit: 'binary' }).map((each) => each.toWellFormed());

describe('options', () => {
  test.each<[object, string]>([
    [{}, 'url'],
    [{ url: 'localhost:5672' }, 'amqp://localhost:5672'],
    [{ url: 'http://localhost' }, 'amqp://localhost:5672'],
    [{ url: [] }, 'url'],
    [{ url, replicas: 0 }, 'a whole number from 1 to 9'],
    [{ url, heartbeat: '1500ms' }, 'whole seconds, from 1s to 10m'],
    [{ url, timeout: 0 }, 'timeout'],
    [{ url, prefix: 'a.b' }, 'letters, digits and hyphens'],
    [{ url, parkedSuffix: '' }, 'parkedSuffix'],
    [{ url, prefetchMax: 1.5 }, 'prefetchMax'],
    [{ url, limits: { payloadBytesMax: 0 } }, 'payloadBytesMax'],
    [{ url, limits: { headersBytesMax: 40_000 } }, 'at most 32768'],
    [{ url, replica: 3 }, 'replica'],
    [{ url, store: { name: 'redis' } }, 'an engine that keeps the order of keys'],
  ])('%j is refused with a sentence', (options, sentence) => {
    expect(() => openRabbitmq(options as RabbitmqOptions)).toThrow(sentence);
  });

  test('never show a password', () => {
    expect(() => openRabbitmq({ url: 'amqb://user:secret@host' })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('secret') }),
    );
  });

  test('say what is missing without a store', async () => {
    const { features, ...engine } = openRabbitmq({ url });
    expect(features.ordering).toEqual({ missing: expect.stringContaining('give a store') });
    expect(engine.triage).toBeUndefined();
    await expect(engine.broker.history('orders', { limit: 1 })).rejects.toThrow('retention');
    await engine.close();
    const withStore = openRabbitmq({ url, store: memoryEngine() });
    expect(withStore.features).toMatchObject({ ordering: true, quarantine: true, parksInTriage: true });
    expect(withStore.triage).toBeDefined();
    await withStore.close();
  });
});

describe('names', () => {
  const names = new Names('holdfast');
  const topic = fc.oneof(
    text,
    fc.constantFrom('orders', 'orders.retry', 'orders%2eretry', 'amq.topic', 'holdfast.topics', '*', 'a.#'),
    text.map((each) => `${each}.retry`),
    text.map((each) => each.repeat(300)),
  );

  test('of queues fit, differ, and are never those of the server or of the delays', () => {
    fc.assert(
      fc.property(topic, topic, (one, other) => {
        const [hot, retry] = [names.queue(one, 'hot'), names.queue(one, 'retry')];
        for (const name of [hot, retry]) {
          expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
          expect(name).not.toMatch(/^(amq|holdfast)\./);
        }
        if (one === other) return;
        expect([hot, retry]).not.toContain(names.queue(other, 'hot'));
        expect(names.token(one)).not.toBe(names.token(other));
      }),
    );
  });

  test('that people choose stay as they are', () => {
    expect(names.queue('orders.größe', 'hot')).toBe('orders.größe');
    expect(names.queue('orders.größe', 'retry')).toBe('orders.größe.retry');
  });
});

describe('delays', () => {
  const names = new Names('holdfast');
  const ladder = new Ladder(names, {});
  const levels = ladder.levels();

  /** What the server does with a routing key: the time that a message waits, and where it ends. */
  function walk({ exchange, routingKey }: { exchange: string; routingKey: string }): [number, string] {
    let waitedMs = 0;
    for (let at = exchange; at !== ladder.due; ) {
      const level = levels.find(({ name }) => name === at)!;
      const isStop = matches(level.stops, routingKey);
      expect(matches(level.passes, routingKey)).toBe(!isStop);
      if (isStop) waitedMs += (level.queueArguments as { 'x-message-ttl': number })['x-message-ttl'];
      at = level.below;
    }
    return [waitedMs, routingKey];
  }

  function matches(pattern: string, key: string): boolean {
    const words = key.split('.');
    return pattern.split('.').every((each, index) => each === '*' || each === '#' || each === words[index]);
  }

  test('are waited for whole, less than 100 ms too long, and end at their topic alone', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: delayMaxMs }), text, (delayMs, topic) => {
        const [waitedMs, key] = walk(ladder.route(topic, delayMs));
        expect(waitedMs).toBeGreaterThanOrEqual(delayMs);
        expect(waitedMs).toBeLessThan(delayMs + 100);
        expect(key.split('.')).toHaveLength(21);
        expect(matches(ladder.end(topic).key, key)).toBe(true);
        expect(matches(ladder.end(`${topic}x`).key, key)).toBe(false);
      }),
    );
  });

  test('above 29 hours wait for 29 hours', () => {
    expect(walk(ladder.route('orders', 1e12))[0]).toBe(delayMaxMs);
  });
});

describe('headers', () => {
  test('come back as they went', () => {
    const name = fc.oneof(text, fc.constantFrom('CC', 'x-death', 'holdfast-headers', '!', '__proto__'));
    fc.assert(
      fc.property(fc.array(fc.tuple(name, text), { maxLength: 8 }), (entries) => {
        const headers = Object.fromEntries(entries);
        expect(decodeHeaders({ headers: encodeHeaders(headers) })).toEqual(headers);
      }),
    );
  });

  test('of other programs are read as text', () => {
    const headers = {
      ...{ n: 17, big: 2n ** 60n, yes: true, none: null, raw: Buffer.from([255]) },
      ...{ table: { a: [1, 'b'] }, at: { '!': 'timestamp', value: 17 }, 'x-delivery-count': 1 },
    };
    expect(decodeHeaders({ headers, type: 'placed', correlationId: 'c', contentType: 'text/plain' })).toEqual(
      {
        ...{ n: '17', big: '1152921504606846976', yes: 'true', none: '', raw: '/w==' },
        ...{ table: '{"a":[1,"b"]}', at: '17' },
        ...{ 'event-type': 'placed', 'correlation-id': 'c', 'content-type': 'text/plain' },
      },
    );
  });

  test('that are too long lose the stack first, then causes and the story, and nothing else', () => {
    const story = Array.from({ length: 20 }, (_, attempt) => ({ attempt, errorMessage: 'm'.repeat(1500) }));
    const error = { type: 'Error', message: 'no', stack: 's'.repeat(24_000), fingerprint: 'f' };
    const given = {
      ...{ mine: 'x'.repeat(20_000), 'last-error': JSON.stringify(error) },
      'retry-story': JSON.stringify(story),
    };
    const { 'last-error': cut, ...rest } = encodeHeaders(given);
    expect(JSON.parse(cut!)).toEqual({ type: 'Error', message: 'no', fingerprint: 'f' });
    expect(rest).toEqual({ mine: given.mine, 'retry-story': given['retry-story'] });

    const huge = encodeHeaders({ ...given, mine: 'x'.repeat(32_000) });
    expect(JSON.parse(huge['retry-story']!)).toEqual(story.slice(-5));
    expect([...reservedHeaders]).toEqual(expect.arrayContaining(['last-error', 'retry-story']));
  });
});

describe('acknowledgements', () => {
  test('forget what is settled, once, and nothing else', () => {
    const batches = fc.array(fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 12 }), { maxLength: 8 });
    fc.assert(
      fc.property(batches, (given) => {
        const window = new AckWindow<number>();
        const server = new Set<number>();
        for (let tag = 1; tag <= 30; tag++) {
          window.add(tag, tag);
          server.add(tag);
        }
        const settled = new Set<number>();
        for (const tags of given) {
          const { upTo, single } = window.settle(tags);
          for (const tag of tags) settled.add(tag);
          for (const tag of single) expect(server.delete(tag)).toBe(true);
          if (upTo !== undefined) expect(server.has(upTo)).toBe(true);
          for (const tag of server) if (tag <= (upTo ?? 0)) server.delete(tag);
          expect(
            Array.from({ length: 30 }, (_, index) => index + 1).filter((tag) => !settled.has(tag)),
          ).toEqual([...server]);
        }
        expect(window.size).toBe(server.size);
      }),
    );
  });

  test('of a run from the first one are one message', () => {
    const window = new AckWindow<string>();
    for (const tag of [1, 2, 3, 4, 5, 6]) window.add(tag, 'a');
    expect(window.settle([5, 2, 1, 3])).toEqual({ upTo: 3, single: [5] });
    expect(window.settle([4, 5])).toEqual({ upTo: 4, single: [] });
    expect(window.settle([4])).toEqual({ upTo: undefined, single: [] });
  });
});
