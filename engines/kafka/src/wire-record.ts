import { isUtf8 } from 'node:buffer';
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

type ReadArrival = Omit<Arrival<KafkaHandle>, 'handle' | 'askedAt'>;

/** This function names every field. It runs for each record, and an object spread would be slower. */
export function toArrival(handle: KafkaHandle, askedAt: number): Arrival<KafkaHandle> {
  const { messageId, headers, payload, key, at } = readRecord(handle.record);
  return { messageId, headers, payload, key, at, handle, askedAt };
}

export function readRecord(record: RawRecord): ReadArrival {
  const headers = readHeaders(record);
  if (groupHeader in headers) delete headers[groupHeader];
  return {
    messageId: `${record.topic}/${record.partition}/${record.offset}`,
    headers,
    payload: record.value ?? '',
    key: record.key?.toString(),
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

/** `toString` writes this character for bytes that are not UTF-8. */
const replacement = '\uFFFD';

function textOf(value: Buffer): string {
  const text = value.toString();
  return text.includes(replacement) && !isUtf8(value) ? value.toString('base64') : text;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
