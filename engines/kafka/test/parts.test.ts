import { memoryEngine } from '@holdfast/contracts/memory';
import { kafkaFeatures } from '@holdfast/kafka';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readUrl } from '../src/kafka-connection.ts';
import { type KafkaOptions, readOptions } from '../src/kafka-options.ts';
import { metadataMax, readRuns, writeRuns } from '../src/offset-runs.ts';
import { Outbox } from '../src/outbox.ts';
import { type FetchedRecord, PartitionWindow } from '../src/partition-window.ts';
import { isTierTopic, readTiers, tierFor, tierTopic } from '../src/tiers.ts';

const record = (offset: number, dueAt = 0): FetchedRecord => ({
  ...{ topic: 't', partition: 0, offset, at: 0, key: null, value: null, headers: [], dueAt },
});

describe('options', () => {
  const url = 'kafka://localhost';

  test.each<[object, string]>([
    [{}, 'kafka://localhost:9092'],
    [{ url, brokers: ['a'] }, 'url'],
    [{ url: 'http://localhost' }, 'kafka://localhost:9092'],
    [{ brokers: [] }, 'brokers'],
    [{ brokers: ['a:99999'] }, 'brokers[0]'],
    [{ url, group: '' }, 'group'],
    [{ url, partitions: 0 }, 'partitions'],
    [{ url, replication: 1.5 }, 'replication'],
    [{ url, tiers: [] }, 'tiers'],
    [{ url, tiers: ['soon'] }, 'soon'],
    [{ url, partition: 3 }, 'partition'],
  ])('%j is refused with a sentence', (options, sentence) => {
    expect(() => readOptions(options as KafkaOptions)).toThrow(sentence);
  });

  test('an address holds several servers, TLS and a login', () => {
    expect(readUrl('kafkas://ada:p%40ss@one:9093,two')).toEqual({
      brokers: [
        { host: 'one', port: 9093 },
        { host: 'two', port: 9092 },
      ],
      tls: {},
      sasl: { mechanism: 'PLAIN', username: 'ada', password: 'p@ss' },
    });
  });

  test('a password is not in the error', () => {
    expect(() => readUrl('kafka:/ada:secret@one')).toThrow(expect.not.stringContaining('secret'));
  });

  test('features say what a store adds', () => {
    const alone = kafkaFeatures({ url, partitions: 1 });
    const both = kafkaFeatures({ url, store: memoryEngine() });
    expect(alone.ordering).not.toBe(true);
    expect([alone.arrivalOrder, both.ordering, both.anyDelay]).toEqual([true, true, true]);
    expect(both.arrivalOrder).not.toBe(true);
  });
});

describe('runs of offsets', () => {
  test('are read as they were written, up to the limit of a commit', () => {
    const sets = fc.uniqueArray(fc.integer({ min: 1, max: 5000 }), { maxLength: 3000 });
    fc.assert(
      fc.property(fc.nat(2 ** 40), sets, (low, above) => {
        const done = above.map((each) => low + each).sort((one, other) => one - other);
        const text = writeRuns(low, done);
        expect(text.length).toBeLessThanOrEqual(metadataMax);
        const read = readRuns(low, text);
        expect(read).toEqual(done.slice(0, read.length));
        if (text.length < metadataMax - 20) expect(read).toEqual(done);
      }),
    );
  });

  test.each(['', 'hello', '1:', '1:x', '1:1', '1:0,1', '1:zzzzzzzzz,1', null])(
    '%j of others means nothing',
    (text) => {
      expect(readRuns(5, text)).toEqual([]);
    },
  );
});

describe('a window', () => {
  test('never commits past an unfinished offset, and a successor gets exactly what is unfinished', () => {
    const orders = fc.uniqueArray(fc.nat(29), { maxLength: 30 });
    fc.assert(
      fc.property(orders, fc.uniqueArray(fc.nat(29), { maxLength: 10 }), (completed, gaps) => {
        const offsets = Array.from({ length: 30 }, (_, offset) => offset).filter(
          (each) => !gaps.includes(each),
        );
        const window = new PartitionWindow('t', 0, 0);
        window.accept(
          offsets.map((offset) => record(offset)),
          30,
        );
        const handles = window.take(100, 0);
        const done = handles.filter(({ record }) => completed.includes(record.offset));
        for (const handle of done) window.complete(handle);
        const unfinished = offsets.filter((offset) => !completed.includes(offset));
        expect(window.low).toBe(unfinished[0] ?? 30);
        expect(window.undone(30)).toBe(unfinished.length);

        const { offset, metadata } = window.progress;
        const next = new PartitionWindow('t', 0, offset, metadata);
        next.accept(
          offsets.filter((each) => each >= offset).map((each) => record(each)),
          30,
        );
        expect(next.take(100, 0).map(({ record }) => record.offset)).toEqual(unfinished);
      }),
    );
  });

  test('gives by due time, takes back, and ignores what it has seen', () => {
    const window = new PartitionWindow('t', 0, 0);
    window.accept([record(0, 30), record(1, 10), record(2, 20)], 3);
    window.accept([record(1, 10), record(2, 20), record(3, 5)], 4);
    expect(window.nextDueAt).toBe(5);
    const given = window.take(10, 20);
    expect(given.map(({ record }) => record.offset)).toEqual([3, 1, 2]);
    window.putBack(given[1]!);
    window.putBack(given[1]!);
    expect(window.take(10, 20).map(({ record }) => record.offset)).toEqual([1]);
    expect(window.low).toBe(0);
  });
});

describe('tiers', () => {
  test('a delay goes to the longest tier that is not longer', () => {
    const tiers = readTiers(['10s', '1s', '90s', '1h', '250ms']);
    expect(tiers.map(({ label }) => label)).toEqual(['250ms', '1s', '10s', '90s', '1h']);
    const labels = [0, 999, 1000, 30_000, 1e9].map((delay) => tierFor(tiers, delay).label);
    expect(labels).toEqual(['250ms', '250ms', '1s', '10s', '1h']);
    expect(tiers.every((tier) => isTierTopic(tierTopic('orders', tier)))).toBe(true);
    expect(isTierTopic('orders.retry')).toBe(false);
  });
});

describe('an outbox', () => {
  const sized = (size: number) => ({
    ...{ topic: 't', partition: 0, value: Buffer.alloc(size), headers: new Map(), timestamp: 0n },
  });

  test('sends one request at a time, none of them too large, all in order', async () => {
    const requests: number[][] = [];
    let running = 0;
    const outbox = new Outbox(async (records) => {
      expect(++running).toBe(1);
      await Promise.resolve();
      requests.push(records.map(({ value }) => value.length));
      running--;
    });
    await Promise.all([outbox.send([sized(500_000), sized(500_001)]), outbox.send([sized(1), sized(2)])]);
    expect(requests).toEqual([[500_000], [500_001, 1, 2]]);
  });

  test('a failed request fails those who have records in it, and no others', async () => {
    let calls = 0;
    const outbox = new Outbox(async () => {
      if (++calls === 1) throw new Error('no leader');
    });
    const first = outbox.send([sized(1), sized(899_999)]);
    await expect(first).rejects.toThrow('no leader');
    await outbox.send([sized(1)]);
    expect(calls).toBe(2);
  });
});
