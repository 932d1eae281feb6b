import { TopicError, type TopicSettings } from '@holdfast/contracts';
import type { Names } from './names.ts';
import { partitionOf } from './names.ts';
import type { Session } from './session.ts';

export interface StreamSettings {
  readonly session: Session;
  readonly names: Names;
  readonly ackWaitMs: number;
  readonly duplicateWindowMs: number;
  readonly partitions: number;
  readonly replicas: number;
  readonly timeoutMs: number;
}

/**
 * The settings of a topic. They are stored in the description of its stream, because servers before 2.10 have
 * no metadata.
 */
interface Described extends TopicSettings {
  /**
   * How many partitions there are for events with a key; 0 without key order. Partition 0 is for events
   * without a key.
   */
  readonly partitions: number;
}

export interface ConsumerInfo {
  readonly name: string;
  readonly num_pending: number;
  readonly num_ack_pending: number;
  readonly ack_floor: { readonly stream_seq: number };
  readonly config: { readonly filter_subject: string };
}

interface StreamInfo {
  readonly config: { readonly description?: string; readonly retention: string };
}

const nanos = 1e6;

/**
 * The most unacknowledged messages of a consumer without key order. Retries that wait for their delay count,
 * too.
 */
const pendingMax = 50_000;

/** Creates the stream of each topic and its consumers, and reads their settings. */
export class Streams {
  readonly #settings: StreamSettings;
  readonly #known = new Map<string, Described>();

  constructor(settings: StreamSettings) {
    this.#settings = settings;
  }

  async ensure(topic: string, wanted: Partial<TopicSettings>): Promise<TopicSettings> {
    const { session, names, timeoutMs } = this.#settings;
    const stream = names.stream(topic);
    const info = await session.api<StreamInfo>(`STREAM.INFO.${stream}`, undefined, timeoutMs);
    const before = info && describedBy(info);
    const ordering = wanted.ordering ?? before?.ordering ?? 'none';
    const keepSettledMs = wanted.keepSettledMs ?? before?.keepSettledMs ?? 0;
    const partitions = ordering === 'key' ? before?.partitions || this.#settings.partitions : 0;
    const described: Described = { ordering, keepSettledMs, partitions };
    if (before && keepSettledMs > 0 !== before.keepSettledMs > 0)
      throw new TopicError(
        topic,
        `keeps acknowledged events for ${before.keepSettledMs} ms, and NATS cannot change the retention of a stream: use another topic`,
      );
    if (!before || JSON.stringify(before) !== JSON.stringify(described))
      await this.#make(topic, described, before ? 'UPDATE' : 'CREATE');
    this.#known.set(topic, described);
    return { ordering, keepSettledMs };
  }

  async has(topic: string): Promise<boolean> {
    return (await this.describe(topic)) !== undefined;
  }

  async topics(): Promise<string[]> {
    const { session, names, timeoutMs } = this.#settings;
    const topics: string[] = [];
    for (let offset = 0; ; ) {
      const page = await session.api<{ streams: string[] | null; total: number }>(
        'STREAM.NAMES',
        { offset },
        timeoutMs,
      );
      const streams = page?.streams ?? [];
      offset += streams.length;
      for (const stream of streams) topics.push(...[names.topicOf(stream) ?? []].flat());
      if (streams.length === 0 || offset >= (page?.total ?? 0)) return topics;
    }
  }

  async describe(topic: string): Promise<Described | undefined> {
    const known = this.#known.get(topic);
    if (known) return known;
    const { session, names, timeoutMs } = this.#settings;
    const info = await session.api<StreamInfo>(`STREAM.INFO.${names.stream(topic)}`, undefined, timeoutMs);
    if (!info) return undefined;
    const described = describedBy(info);
    this.#known.set(topic, described);
    return described;
  }

  /**
   * The partitions of the `hot` queue (for first attempts) of a topic. Call `describe` first; an unknown
   * topic has only partition 0.
   */
  partitions(topic: string): number[] {
    return Array.from({ length: 1 + (this.#known.get(topic)?.partitions ?? 0) }, (_, partition) => partition);
  }

  /**
   * All events of a key are in one partition. A partition delivers one event at a time, so their order is
   * kept.
   */
  partitionOf(topic: string, key: string | undefined): number {
    const partitions = this.#known.get(topic)?.partitions ?? 0;
    return partitions === 0 || key === undefined ? 0 : 1 + partitionOf(key, partitions);
  }

  async consumers(topic: string): Promise<readonly ConsumerInfo[]> {
    const { session, names, timeoutMs } = this.#settings;
    const path = `CONSUMER.LIST.${names.stream(topic)}`;
    const page = await session.api<{ consumers: ConsumerInfo[] | null }>(path, { offset: 0 }, timeoutMs);
    return page?.consumers ?? [];
  }

  async #make(topic: string, described: Described, how: 'CREATE' | 'UPDATE'): Promise<void> {
    const { session, names, timeoutMs, replicas, duplicateWindowMs } = this.#settings;
    const stream = names.stream(topic);
    await session.api(
      `STREAM.${how}.${stream}`,
      {
        name: stream,
        description: JSON.stringify(described),
        subjects: [names.subject(topic, 'hot', '*'), names.subject(topic, 'retry')],
        // With `limits`, acknowledged events stay until `sweep` deletes them. With `workqueue`, the server
        // deletes them.
        retention: described.keepSettledMs > 0 ? 'limits' : 'workqueue',
        storage: 'file',
        num_replicas: replicas,
        duplicate_window: duplicateWindowMs * nanos,
        ...{ max_msgs: -1, max_bytes: -1, max_age: 0, discard: 'old' },
      },
      timeoutMs,
    );
    const hot = Array.from({ length: 1 + described.partitions }, (_, partition) => partition);
    await Promise.all([
      ...hot.map((partition) => this.#makeConsumer(topic, 'hot', partition)),
      this.#makeConsumer(topic, 'retry', 0),
    ]);
  }

  async #makeConsumer(topic: string, queue: 'hot' | 'retry', partition: number): Promise<void> {
    const { session, names, timeoutMs, ackWaitMs } = this.#settings;
    const stream = names.stream(topic);
    const name = names.consumer(queue, partition);
    await session.api(
      `CONSUMER.DURABLE.CREATE.${stream}.${name}`,
      {
        stream_name: stream,
        config: {
          durable_name: name,
          filter_subject: names.subject(topic, queue, partition),
          deliver_policy: 'all',
          ack_policy: 'explicit',
          ack_wait: ackWaitMs * nanos,
          // No limit, because the server would never deliver the message again after `max_deliver`
          // deliveries. Our consumer limits the attempts.
          max_deliver: -1,
          max_ack_pending: partition > 0 ? 1 : pendingMax,
          replay_policy: 'instant',
        },
      },
      timeoutMs,
    );
  }
}

function describedBy({ config }: StreamInfo): Described {
  try {
    const { ordering, keepSettledMs, partitions } = JSON.parse(config.description ?? '{}');
    return {
      ordering: ordering === 'key' ? 'key' : 'none',
      keepSettledMs: keepSettledMs ?? 0,
      partitions: partitions ?? 0,
    };
  } catch {
    return { ordering: 'none', keepSettledMs: 0, partitions: 0 };
  }
}
