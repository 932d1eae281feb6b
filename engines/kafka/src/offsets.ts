import type { CommittedOffset } from './consumer-group.ts';
import { type Assigned, isPassing, type KafkaClient, throwAnswer } from './kafka-client.ts';

interface PartitionAnswer {
  readonly partitionIndex: number;
  readonly committedOffset: bigint;
  readonly metadata: string | null;
  readonly errorCode: number;
}

interface TopicAnswer {
  readonly name: string;
  readonly partitions: readonly PartitionAnswer[];
}

interface GroupAnswer {
  readonly errorCode: number;
  readonly topics: readonly TopicAnswer[];
}

/**
 * Reads the committed offsets of a group. The offset of a partition is −1 if the group has committed nothing
 * there.
 */
async function committedOffsets(
  client: KafkaClient,
  group: string,
  wanted: readonly Assigned[],
): Promise<CommittedOffset[]> {
  const topics = wanted.map(({ topic, partitions }) => ({ name: topic, partitionIndexes: partitions }));
  const node = await client.coordinatorOf(group);
  const answer = await client.request<GroupAnswer & { readonly groups?: readonly GroupAnswer[] }>(
    'OffsetFetch',
    [[{ groupId: group, memberId: null, memberEpoch: -1, topics }], false],
    node,
  );
  // Newer servers answer with a list of groups. We ask for one group.
  const read = answer.groups?.[0] ?? answer;
  throwAnswer(`a question for the offsets of group ${group}`, read.errorCode);
  return read.topics.flatMap(({ name, partitions }) =>
    partitions.map(({ partitionIndex, committedOffset, metadata, errorCode }) => {
      throwAnswer(`a question for the offset of ${name}/${partitionIndex}`, errorCode);
      return {
        topic: name,
        partition: partitionIndex,
        offset: Number(committedOffset),
        metadata: metadata ?? '',
      };
    }),
  );
}

/** Calls `committedOffsets`, and repeats the call while the coordinator of the group is not ready. */
export async function committedOffsetsSoon(
  client: KafkaClient,
  group: string,
  wanted: readonly Assigned[],
  pause: () => Promise<void>,
): Promise<CommittedOffset[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await committedOffsets(client, group, wanted);
    } catch (error) {
      if (attempt >= attemptsMax || !isPassing(error)) throw error;
      await pause();
    }
  }
}

const attemptsMax = 50;
