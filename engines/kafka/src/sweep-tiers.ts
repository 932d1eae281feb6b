import { listOffsets } from './fetch.ts';
import type { KafkaClient, TopicLayout } from './kafka-client.ts';
import { throwAnswer } from './kafka-client.ts';
import { committedOffsetsSoon } from './offsets.ts';

const deleteTimeoutMs = 30_000;

/**
 * Deletes at most `limit` records that every group has handled from the retry topics of `topic`. Returns how
 * many.
 */
export async function sweepTiers(
  client: KafkaClient,
  topic: string,
  tiers: readonly TopicLayout[],
  limit: number,
  pause: () => Promise<void>,
): Promise<number> {
  if (tiers.length === 0 || limit <= 0) return 0;
  const groups = (await retryGroups(client)).filter((group) => group.endsWith(`.${topic}.retry`));
  if (groups.length === 0) return 0;
  let left = limit;
  for (const layout of tiers) {
    const partitions = [...layout.leaders.keys()];
    const done: number[] = partitions.map(() => Infinity);
    for (const group of groups)
      for (const { partition, offset } of await committedOffsetsSoon(
        client,
        group,
        [{ topic: layout.name, partitions }],
        pause,
      ))
        done[partition] = Math.min(done[partition]!, offset);
    const first = await listOffsets(client, layout, 'first');
    for (const partition of partitions) {
      const before = Math.min(done[partition]!, first[partition]! + left);
      if (!(before > first[partition]!)) continue;
      const { topics } = await client.request<{
        topics: readonly { partitions: readonly { errorCode: number }[] }[];
      }>(
        'DeleteRecords',
        [
          [{ name: layout.name, partitions: [{ partitionIndex: partition, offset: BigInt(before) }] }],
          deleteTimeoutMs,
        ],
        layout.leaders[partition],
      );
      throwAnswer(`a deletion in ${layout.name}/${partition}`, topics[0]?.partitions[0]?.errorCode ?? 0);
      left -= before - first[partition]!;
    }
  }
  return limit - left;
}

/**
 * Returns the consumer groups of retry topics. Asks every broker, because a broker lists only the groups that
 * it coordinates.
 */
async function retryGroups(client: KafkaClient): Promise<string[]> {
  const names: string[] = [];
  for (const node of await client.nodes()) {
    const { errorCode, groups } = await client.request<{
      errorCode: number;
      groups: readonly { groupId: string }[];
    }>('ListGroups', [[], []], node);
    throwAnswer('a question for groups', errorCode);
    names.push(...groups.map(({ groupId }) => groupId).filter((group) => group.endsWith('.retry')));
  }
  return names;
}
