import { TopicError } from '@holdfast/contracts';
import { type Clock, OptionsError, sleep } from 'holdfast';
import { listOffsets } from './fetch.ts';
import {
  answerName,
  answerOf,
  isPassing,
  type KafkaClient,
  type TopicLayout,
  throwAnswer,
} from './kafka-client.ts';

/** A topic that must exist, with its settings. */
export interface WantedTopic {
  readonly name: string;
  /** `undefined`: any number of partitions is accepted. */
  readonly partitions: number | undefined;
  /** How long a topic that is created here keeps its records, in ms; −1: for ever. */
  readonly retentionMs: number;
  /** A topic that already exists must keep its records for at least this time, in ms. */
  readonly retentionMinMs: number;
}

export interface TopicDefaults {
  readonly partitions: number;
  /** How many servers keep a copy; −1: the default of the server. */
  readonly replication: number;
  readonly mayCreate: boolean;
  /** The address that is shown in the commands of error messages. */
  readonly bootstrapServer: string;
}

const createTimeoutMs = 30_000;
const topicResource = 2;
const pauseMs = 20;
const attemptsMax = 500;
const longestName = 249;

/**
 * Throws if Kafka would refuse the name. `rest`: the length of the longest suffix that is added to it, such
 * as `.retry.10s`.
 */
export function assertKafkaName(name: string, rest: number): void {
  const isValid = /^[\w.-]+$/.test(name) && name !== '.' && name !== '..';
  if (!isValid || name.length > longestName - rest)
    throw new OptionsError(
      'topic',
      name,
      `a name for Kafka: at most ${longestName - rest} letters, digits, ".", "_" and "-"`,
    );
}

/**
 * Creates the topics that do not exist, and resolves when all their partitions have leaders. Rejects if a
 * topic exists with other settings, or if this process may not create it. The error contains the command to
 * run.
 */
export async function ensureTopics(
  client: KafkaClient,
  clock: Clock,
  wanted: readonly WantedTopic[],
  defaults: TopicDefaults,
): Promise<void> {
  const names = wanted.map(({ name }) => name);
  const known = new Map((await client.topics(names)).map((layout) => [layout.name, layout]));
  const existing = wanted.filter(({ name }) => known.has(name));
  for (const topic of existing) assertPartitions(topic, known.get(topic.name)!, defaults);
  await assertRetention(client, existing, defaults);
  const missing = wanted.filter(({ name }) => !known.has(name));
  if (missing.length > 0) await create(client, missing, defaults);
  for (let attempt = 1; !(await areReady(client, names)); attempt++) {
    if (attempt === attemptsMax) throw new TopicError(names[0]!, 'has no leader on the servers');
    await sleep(clock, pauseMs);
  }
}

/**
 * Returns true if the asked server knows the topics, and the leaders of all partitions answer. Right after a
 * topic was created, this may take some time.
 */
async function areReady(client: KafkaClient, names: readonly string[]): Promise<boolean> {
  try {
    const layouts = await client.topics(names);
    if (layouts.length < names.length) return false;
    await Promise.all(layouts.map((layout) => listOffsets(client, layout, 'end')));
    return layouts.every(({ leaders }) => leaders.length > 0);
  } catch (error) {
    if (isPassing(error) || answerOf(error) === 'BROKER_NOT_AVAILABLE') return false;
    throw error;
  }
}

/** How long each topic keeps its records, in ms; −1: for ever. */
export async function retentionOf(
  client: KafkaClient,
  names: readonly string[],
): Promise<Map<string, number>> {
  if (names.length === 0) return new Map();
  const { results } = await client.request<{
    results: readonly {
      errorCode: number;
      resourceName: string;
      configs: readonly { name: string; value: string | null }[];
    }[];
  }>('DescribeConfigs', [
    names.map((resourceName) => ({
      resourceType: topicResource,
      resourceName,
      configurationKeys: ['retention.ms', 'cleanup.policy'],
    })),
    ...[false, false],
  ]);
  return new Map(
    results.map(({ errorCode, resourceName, configs }) => {
      throwAnswer(`a question for the settings of topic ${resourceName}`, errorCode);
      const value = (name: string) => configs.find((config) => config.name === name)?.value;
      return [resourceName, value('cleanup.policy') === 'compact' ? -1 : Number(value('retention.ms') ?? -1)];
    }),
  );
}

async function create(
  client: KafkaClient,
  missing: readonly WantedTopic[],
  defaults: TopicDefaults,
): Promise<void> {
  const { replication, mayCreate } = defaults;
  if (!mayCreate) throw notThere(missing, 'createTopics is false', defaults);
  const { topics } = await client.request<{
    topics: readonly { name: string; errorCode: number; errorMessage: string | null }[];
  }>('CreateTopics', [
    missing.map(({ name, partitions = defaults.partitions, retentionMs }) => ({
      ...{ name, numPartitions: partitions, replicationFactor: replication, assignments: [] },
      configs: [
        { name: 'retention.ms', value: String(retentionMs) },
        { name: 'cleanup.policy', value: 'delete' },
      ],
    })),
    ...[createTimeoutMs, false],
  ]);
  for (const { errorCode, errorMessage } of topics) {
    const answer = answerName(errorCode);
    // Another process that starts at the same time may have created the topic.
    if (answer === 'NONE' || answer === 'TOPIC_ALREADY_EXISTS') continue;
    throw notThere(
      missing,
      `the server answered ${answer}${errorMessage ? ` (${errorMessage})` : ''}`,
      defaults,
    );
  }
}

function notThere(missing: readonly WantedTopic[], why: string, defaults: TopicDefaults): TopicError {
  const commands = missing.map(({ name, partitions = defaults.partitions, retentionMs }) =>
    [
      `kafka-topics.sh --bootstrap-server ${defaults.bootstrapServer} --create --topic ${name}`,
      `--partitions ${partitions}`,
      ...(defaults.replication > 0 ? [`--replication-factor ${defaults.replication}`] : []),
      `--config retention.ms=${retentionMs}`,
    ].join(' '),
  );
  return new TopicError(missing[0]!.name, `cannot be created: ${why}. Run: ${commands.join(' && ')}`);
}

function assertPartitions(
  { name, partitions }: WantedTopic,
  { leaders }: TopicLayout,
  { bootstrapServer }: TopicDefaults,
): void {
  if (partitions === undefined || leaders.length === partitions) return;
  const has = `has ${leaders.length} partitions, and ${partitions} are wanted`;
  if (leaders.length > partitions)
    throw new TopicError(name, `${has}: set the option "partitions" to ${leaders.length}`);
  throw new TopicError(
    name,
    `${has}. Run: kafka-topics.sh --bootstrap-server ${bootstrapServer} --alter --topic ${name} --partitions ${partitions}`,
  );
}

async function assertRetention(
  client: KafkaClient,
  existing: readonly WantedTopic[],
  { bootstrapServer }: TopicDefaults,
): Promise<void> {
  const kept = await retentionOf(
    client,
    existing.map(({ name }) => name),
  );
  for (const { name, retentionMs, retentionMinMs } of existing) {
    const ms = kept.get(name) ?? -1;
    if (ms !== -1 && ms < retentionMinMs)
      throw new TopicError(
        name,
        `keeps events for ${ms} ms, and would lose those that wait longer. Run: kafka-configs.sh --bootstrap-server ${bootstrapServer} --alter --topic ${name} --add-config retention.ms=${retentionMs}`,
      );
  }
}
