import type { Headers } from '@holdfast/contracts';
import type { Arrival, Message } from '@holdfast/contracts/carrier';
import { readForeignHeaders } from './foreign-headers.ts';
import type { NewRecord } from './kafka-client.ts';
import type { FetchedRecord, KafkaHandle, RawRecord } from './partition-window.ts';

/**
 * The header with the consumer group that a retry is for. Other groups that read the retry topic skip the
 * record.
 */
export const groupHeader = 'retry-group';

export function toRecord(
  { headers, payload, key }: Message,
  to: { readonly topic: string; readonly partition: number },
  at: number,
): NewRecord {
  return {
    ...to,
    ...(key !== undefined && { key: Buffer.from(key) }),
    value: typeof payload === 'string' ? Buffer.from(payload) : asBuffer(payload),
    headers: headerBytes(headers),
    timestamp: BigInt(at),
  };
}

export function headerBytes(headers: Headers): Map<Buffer, Buffer> {
  return new Map(Object.entries(headers).map(([name, value]) => [Buffer.from(name), Buffer.from(value)]));
}

export function toArrival(record: RawRecord): Omit<Arrival<KafkaHandle>, 'handle' | 'askedAt'> {
  const { [groupHeader]: _, ...headers } = readHeaders(record);
  return {
    messageId: `${record.topic}/${record.partition}/${record.offset}`,
    headers,
    payload: record.value ?? '',
    key: record.key === null ? undefined : record.key.toString(),
    at: record.at,
  };
}

/**
 * Reads headers as text. The last of repeated headers wins, null becomes an empty text, other bytes become
 * base64.
 */
export function readHeaders({ headers }: Pick<FetchedRecord, 'headers'>): { [name: string]: string } {
  const texts: { [name: string]: string } = {};
  let isForeign = false;
  for (const [name, value] of headers) {
    const text = name?.toString() ?? '';
    texts[text] = value === null ? '' : textOf(value);
    isForeign ||= text.startsWith('kafka_') || text.startsWith('retry_topic-');
  }
  return isForeign ? readForeignHeaders(texts, headers) : texts;
}

const utf8 = /* @__PURE__ */ new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function textOf(value: Buffer): string {
  try {
    return utf8.decode(value);
  } catch {
    return value.toString('base64');
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
