import type { HistoryRange, Page } from '@holdfast/contracts';
import { OptionsError } from 'holdfast';
import { type Fetched, fetchRecords, listOffsets } from './fetch.ts';
import type { KafkaClient, Line, TopicLayout } from './kafka-client.ts';
import type { RawRecord } from './partition-window.ts';

const partitionBytesMax = 4 * 1024 * 1024;

interface Source {
  readonly partition: number;
  readonly end: number;
  position: number;
  records: RawRecord[];
}

/**
 * Reads a topic from a time on, or from the offsets of a cursor on. The cursor `0:17,1:230` starts partition
 * 0 at offset 17, and partition 1 at offset 230. The records of all partitions are merged by their time.
 */
export async function readHistory(
  client: KafkaClient,
  line: Line,
  layout: TopicLayout,
  { limit, cursor, from, to = Infinity }: HistoryRange,
): Promise<Page<RawRecord>> {
  const ends = await listOffsets(client, layout, 'end');
  const first = await listOffsets(client, layout, 'first');
  const starts = await startsOf(client, layout, first, ends, cursor, from);
  const sources = ends.map((end, partition): Source => {
    // The offsets of a cursor may have been deleted meanwhile.
    const position = Math.max(starts[partition]!, first[partition]!);
    return { partition, end, position, records: [] };
  });
  const items: RawRecord[] = [];
  while (items.length < limit) {
    await fill(line, layout, sources);
    const next = earliest(sources);
    if (!next) break;
    const record = next.records.shift()!;
    next.position = record.offset + 1;
    if (record.at < to && record.at >= (from ?? 0)) items.push(record);
  }
  const isLast = sources.every(({ position, end, records }) => records.length === 0 && position >= end);
  return {
    items,
    cursor: isLast
      ? undefined
      : sources.map(({ partition, position }) => `${partition}:${position}`).join(','),
  };
}

async function startsOf(
  client: KafkaClient,
  layout: TopicLayout,
  first: readonly number[],
  ends: readonly number[],
  cursor: string | undefined,
  from: number | undefined,
): Promise<number[]> {
  if (cursor !== undefined) {
    const given = readCursor(cursor);
    return first.map((offset, partition) => given.get(partition) ?? offset);
  }
  if (from === undefined) return [...first];
  const found = await listOffsets(client, layout, from);
  return found.map((offset, partition) => (offset < 0 ? ends[partition]! : offset));
}

function readCursor(cursor: string): Map<number, number> {
  if (!/^\d+:\d+(,\d+:\d+)*$/.test(cursor))
    throw new OptionsError(
      'cursor',
      cursor,
      'one that a page of this list gave, or offsets such as "0:17,1:230"',
    );
  return new Map(cursor.split(',').map((each) => each.split(':').map(Number) as [number, number]));
}

/** Fetches more records for each partition that has none left in memory and is not read to its end. */
async function fill(line: Line, layout: TopicLayout, sources: readonly Source[]): Promise<void> {
  for (;;) {
    const empty = sources.filter(({ records, position, end }) => records.length === 0 && position < end);
    if (empty.length === 0) return;
    const wanted = empty.map(({ partition, position }) => ({ topic: layout.name, partition, position }));
    const limits = { waitMs: 0, partitionBytesMax };
    const fetched = await fetchRecords(line, new Map([[layout.name, layout]]), wanted, limits);
    for (const source of empty)
      take(source, fetched.find(({ partition }) => partition === source.partition)!);
  }
}

function take(source: Source, { records, nextPosition, isOutOfRange }: Fetched): void {
  source.records = records.filter(({ offset }) => offset >= source.position && offset < source.end);
  if (source.records.length > 0) return;
  // The fetch returned no record: these offsets have only end markers of transactions, or their records were
  // deleted. Continue after them, or at the end of the partition.
  source.position = isOutOfRange || nextPosition <= source.position ? source.end : nextPosition;
}

function earliest(sources: readonly Source[]): Source | undefined {
  let best: Source | undefined;
  for (const source of sources)
    if (source.records.length > 0 && !(best && best.records[0]!.at <= source.records[0]!.at)) best = source;
  return best;
}
