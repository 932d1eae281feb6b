import { answerName, type KafkaClient, type Line, type TopicLayout, throwAnswer } from './kafka-client.ts';
import type { RawRecord } from './partition-window.ts';

/** A partition to fetch from, and the first offset to fetch. */
export interface FetchFrom {
  readonly topic: string;
  readonly partition: number;
  readonly position: number;
}

export interface Fetched {
  readonly topic: string;
  readonly partition: number;
  readonly records: readonly RawRecord[];
  readonly nextPosition: number;
  /** The offset after the last committed record, at the time of the server's answer. */
  readonly end: number;
  /**
   * True: the partition has no record at the requested offset, for example because the record was deleted.
   */
  readonly isOutOfRange: boolean;
}

export interface FetchLimits {
  readonly waitMs: number;
  readonly partitionBytesMax: number;
}

interface Batch {
  readonly firstOffset: bigint;
  readonly lastOffsetDelta: number;
  readonly attributes: number;
  readonly firstTimestamp: bigint;
  readonly maxTimestamp: bigint;
  readonly producerId: bigint;
  readonly records: readonly {
    readonly timestampDelta: bigint;
    readonly offsetDelta: number;
    readonly key: Buffer | null;
    readonly value: Buffer | null;
    readonly headers: readonly (readonly [Buffer | null, Buffer | null])[];
  }[];
}

interface PartitionAnswer {
  readonly partitionIndex: number;
  readonly errorCode: number;
  readonly highWatermark: bigint;
  readonly lastStableOffset: bigint;
  readonly abortedTransactions: readonly { producerId: bigint; firstOffset: bigint }[] | null;
  readonly records: readonly Batch[] | null;
}

interface FetchAnswer {
  readonly errorCode: number;
  readonly responses: readonly {
    readonly topicId: string;
    readonly partitions: readonly PartitionAnswer[];
  }[];
}

const bytesMax = 16 * 1024 * 1024;
const readCommitted = 1;
const noSession = { id: 0, epoch: -1 };
/**
 * Up to this protocol version, a fetch request contains the names of topics. Newer versions contain the ids
 * of topics.
 */
const namesUntilVersion = 12;

/** Fetches records of all given partitions, each from the broker that leads the partition. */
export async function fetchRecords(
  line: Line,
  layouts: ReadonlyMap<string, TopicLayout>,
  from: readonly FetchFrom[],
  { waitMs, partitionBytesMax }: FetchLimits,
): Promise<Fetched[]> {
  const byLeader = new Map<number, FetchFrom[]>();
  for (const each of from) {
    const leader = layouts.get(each.topic)?.leaders[each.partition] ?? -1;
    byLeader.set(leader, [...(byLeader.get(leader) ?? []), each]);
  }
  const names = new Map<string, string>();
  for (const { name, id } of layouts.values()) names.set(id, name).set(name, name);
  const answers = await Promise.all(
    Array.from(byLeader, async ([leader, wanted]) => {
      const { errorCode, responses } = await line.request<FetchAnswer>(leader, 'Fetch', (version) => [
        ...[waitMs, 1, bytesMax, readCommitted, noSession.id, noSession.epoch],
        topicsOf(
          wanted,
          (name) => (version > namesUntilVersion ? layouts.get(name)!.id : name),
          partitionBytesMax,
        ),
        ...[[], ''],
      ]);
      throwAnswer('a fetch', errorCode);
      return responses.flatMap(({ topicId, partitions }) =>
        partitions.map((partition) => readPartition(names.get(topicId)!, partition)),
      );
    }),
  );
  return answers.flat();
}

function topicsOf(from: readonly FetchFrom[], idOf: (name: string) => string, partitionMaxBytes: number) {
  const topics = new Map<string, { topicId: string; partitions: object[] }>();
  for (const { topic, partition, position } of from) {
    const wanted = topics.get(topic) ?? { topicId: idOf(topic), partitions: [] };
    topics.set(topic, wanted);
    wanted.partitions.push({
      partition,
      currentLeaderEpoch: -1,
      fetchOffset: BigInt(position),
      lastFetchedEpoch: -1,
      partitionMaxBytes,
    });
  }
  return [...topics.values()];
}

const isTransactional = 16;
const isControl = 32;
const hasAppendTime = 8;

function readPartition(topic: string, answer: PartitionAnswer): Fetched {
  const { partitionIndex: partition, errorCode, abortedTransactions } = answer;
  const isOutOfRange = answerName(errorCode) === 'OFFSET_OUT_OF_RANGE';
  if (!isOutOfRange) throwAnswer(`a fetch from ${topic}/${partition}`, errorCode);
  const records: RawRecord[] = [];
  const aborted = [...(abortedTransactions ?? [])].sort((one, other) =>
    Number(one.firstOffset - other.firstOffset),
  );
  /**
   * Producers with an aborted transaction. Their records are skipped until the end marker of the transaction.
   */
  const abortedNow = new Set<bigint>();
  let nextPosition = 0;
  for (const batch of answer.records ?? []) {
    const first = Number(batch.firstOffset);
    const last = first + batch.lastOffsetDelta;
    nextPosition = last + 1;
    while (aborted.length > 0 && Number(aborted[0]!.firstOffset) <= last)
      abortedNow.add(aborted.shift()!.producerId);
    if (batch.attributes & isControl) {
      // A control record ends a transaction. If its key has the type 0, the transaction was aborted.
      if (batch.records[0]?.key?.readInt16BE(2) === 0) abortedNow.delete(batch.producerId);
      continue;
    }
    if (batch.attributes & isTransactional && abortedNow.has(batch.producerId)) continue;
    // This code runs for each record. Numbers are faster than `bigint`, and an object spread would be slower.
    const firstAt = Number(batch.firstTimestamp);
    const appendedAt = batch.attributes & hasAppendTime ? Number(batch.maxTimestamp) : undefined;
    for (const { offsetDelta, timestampDelta, key, value, headers } of batch.records)
      records.push({
        topic,
        partition,
        offset: first + offsetDelta,
        at: appendedAt ?? firstAt + Number(timestampDelta),
        key,
        value,
        headers,
      });
  }
  return { topic, partition, records, nextPosition, end: Number(answer.lastStableOffset), isOutOfRange };
}

/**
 * Returns an offset for each partition: of the first record, of the end, or of the first record since a time.
 */
export async function listOffsets(
  client: KafkaClient,
  layout: TopicLayout,
  at: number | 'first' | 'end',
): Promise<number[]> {
  const timestamp = at === 'end' ? -1n : at === 'first' ? -2n : BigInt(Math.floor(at));
  const offsets: number[] = layout.leaders.map(() => -1);
  for (const leader of new Set(layout.leaders)) {
    const partitions = layout.leaders.flatMap((each, partitionIndex) =>
      each === leader ? [{ partitionIndex, currentLeaderEpoch: -1, timestamp }] : [],
    );
    const answer = await client.request<{
      topics: readonly {
        partitions: readonly { partitionIndex: number; errorCode: number; offset: bigint }[];
      }[];
    }>('ListOffsets', [-1, readCommitted, [{ name: layout.name, partitions }]], leader);
    for (const { partitionIndex, errorCode, offset } of answer.topics[0]?.partitions ?? []) {
      throwAnswer(`a question for offsets of ${layout.name}`, errorCode);
      offsets[partitionIndex] = Number(offset);
    }
  }
  return offsets;
}
