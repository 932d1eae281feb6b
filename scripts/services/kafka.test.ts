import { describe, expect } from 'vitest';
import { askKafka, int16, int32, int64, string } from './kafka-requests.ts';
import { restartTests } from './restart-tests.ts';
import { ownService, titled } from './service.ts';

const kafka = await ownService('kafka');
const topic = string('crumbs');
const [topicCount, partitionCount, partition] = [int32(1), int32(1), int32(0)];
const timeoutMs = int32(10_000);
const alreadyExists = 36;

describe.skipIf(kafka.missing)(titled('kafka', kafka), () => {
  restartTests(kafka, {
    async put(url, text) {
      const [replicas, noAssignments, noConfigs, validateOnly] = [int16(1), int32(0), int32(0), int8(0)];
      const wanted = [topic, partitionCount, replicas, noAssignments, noConfigs];
      const created = await askKafka(url, 'createTopics', topicCount, ...wanted, timeoutMs, validateOnly);
      const throttleBytes = 4;
      expect([0, alreadyExists]).toContain(created.readInt16BE(throttleBytes + 4 + topic.length));

      const [noTransaction, acksOfAll] = [int16(-1), int16(-1)];
      const records = batchOf(text);
      const target = [topicCount, topic, partitionCount, partition, int32(records.length), records];
      const stored = await askKafka(url, 'produce', noTransaction, acksOfAll, timeoutMs, ...target);
      expect(stored.readInt16BE(4 + topic.length + 4 + 4)).toBe(0);
    },
    async get(url) {
      const [noReplica, waitMs, bytesMin, bytesMax] = [int32(-1), int32(100), int32(1), int32(2 ** 20)];
      const from = [topicCount, topic, partitionCount, partition, int64(0), bytesMax];
      const answer = await askKafka(url, 'fetch', noReplica, waitMs, bytesMin, bytesMax, int8(0), ...from);
      return answer.toString('latin1');
    },
  });
});

/** A batch with one record. */
function batchOf(value: string): Buffer {
  const noKey = varint(-1);
  const content = [int8(0), varint(0), varint(0), noKey, varint(value.length), Buffer.from(value), varint(0)];
  const record = Buffer.concat(content);
  const now = int64(Date.now());
  const noProducer = [int64(-1), int16(-1), int32(-1)];
  const [attributes, lastOffset, count] = [int16(0), int32(0), int32(1)];
  const checked = Buffer.concat([
    ...[attributes, lastOffset, now, now, ...noProducer, count],
    ...[varint(record.length), record],
  ]);
  const magic = int8(2);
  const rest = Buffer.concat([int32(-1), magic, crc32c(checked), checked]);
  return Buffer.concat([int64(0), int32(rest.length), rest]);
}

function int8(value: number): Buffer {
  return Buffer.from([value]);
}

/** Zigzag; one byte is enough here. */
function varint(value: number): Buffer {
  const zigzag = value < 0 ? -2 * value - 1 : 2 * value;
  expect(zigzag).toBeLessThan(128);
  return int8(zigzag);
}

function crc32c(bytes: Buffer): Buffer {
  let crc = 0xffff_ffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f6_3b78 : 0);
  }
  return int32(~crc);
}
