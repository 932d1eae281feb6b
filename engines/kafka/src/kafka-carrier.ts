import { missing, type SizeLimits, type TopicSettings } from '@holdfast/contracts';
import type { Carrier, CarrierCounts, Message, QueueName } from '@holdfast/contracts/carrier';
import type { Clock } from 'holdfast';
import { listOffsets } from './fetch.ts';
import { KafkaClient, type Line, type NewRecord, partitionOfKey, type TopicLayout } from './kafka-client.ts';
import type { KafkaSettings } from './kafka-options.ts';
import { assertKafkaName, ensureTopics, retentionOf, type WantedTopic } from './kafka-topics.ts';
import { committedOffsetsSoon } from './offsets.ts';
import { Outbox } from './outbox.ts';
import {
  type DeliveryTime,
  type FetchedRecord,
  type KafkaHandle,
  PartitionWindow,
  type RawRecord,
} from './partition-window.ts';
import { Pause } from './pause.ts';
import { sweepTiers } from './sweep-tiers.ts';
import { isTierTopic, type Tier, tierFor, tierTopic } from './tiers.ts';
import { readHistory } from './topic-history.ts';
import { TopicReader } from './topic-reader.ts';
import { groupHeader, headerBytes, readHeaders, readRecord, toRecord } from './wire-record.ts';

const dueHeader = 'due-ts';
const firstSeenHeader = 'first-seen-ts';
const pauseMs = 50;
const layoutAgeMs = 5000;

/**
 * These limits keep a record with its headers below 1 MiB, the largest record that Kafka accepts by default.
 */
const kafkaLimits: SizeLimits = {
  payloadBytesMax: 900_000,
  headersBytesMax: 16 * 1024,
  batchMax: 10_000,
  keyLengthMax: 512,
};

/**
 * Sends and receives messages through Kafka. The topic `orders` is a Kafka topic of that name. Each tier of
 * retry delays adds a topic, such as `orders.retry.10s`.
 */
export function kafkaCarrier(settings: KafkaSettings, hasStore: boolean): Carrier<KafkaHandle> {
  return new KafkaCarrier(settings, hasStore);
}

class KafkaCarrier implements Carrier<KafkaHandle> {
  readonly name = 'kafka';
  readonly limits = kafkaLimits;
  readonly tells = { key: true, time: true };
  readonly holdMs = undefined;
  readonly features;
  readonly #settings: KafkaSettings;
  readonly #hasStore: boolean;
  readonly #clock: Clock;
  readonly #client: KafkaClient;
  readonly #outbox: Outbox;
  readonly #historyLine: Line;
  readonly #readers = new Map<string, TopicReader>();
  /** Topics that this process has declared or opened. `sweep` cleans the retry topics of these only. */
  readonly #used = new Set<string>();
  readonly #layouts = new Map<string, { layout: TopicLayout; until: number }>();
  #nextPartition = 0;

  constructor(settings: KafkaSettings, hasStore: boolean) {
    this.#settings = settings;
    this.#hasStore = hasStore;
    this.#clock = settings.clock;
    this.#client = new KafkaClient(settings.connection);
    this.#outbox = new Outbox((records) => this.#client.produce(records));
    this.#historyLine = this.#client.newLine();
    this.features = {
      arrivalOrder:
        settings.partitions === 1
          ? (true as const)
          : missing('partitions are read side by side, each in its own order'),
      anyDelay: missing(
        'retries wait in topics by the class of their delay, and come late behind thousands of longer ones',
      ),
      durable: true as const,
    };
  }

  async ensure(topic: string, wanted: Partial<TopicSettings>): Promise<TopicSettings> {
    const { tiers, retentionMs, partitions, parkedSuffix } = this.#settings;
    assertKafkaName(topic, longestSuffix(tiers, parkedSuffix));
    this.#used.add(topic);
    const { ordering = 'none', keepSettledMs } = wanted;
    const isParked = topic.endsWith(parkedSuffix);
    const hot: WantedTopic = {
      name: topic,
      partitions,
      retentionMs: isParked ? -1 : Math.max(retentionMs, Math.ceil(keepSettledMs ?? 0)),
      retentionMinMs: keepSettledMs ?? 0,
    };
    // Create the retry topics now only if there is no store: with a store, retries wait in the store. The
    // retry topics of a dead-letter topic are created by `send`, with the first retry.
    await this.#create(this.#hasStore || isParked ? [hot] : [hot, ...this.#tierTopics(topic, tiers)]);
    const kept = (await retentionOf(this.#client, [topic])).get(topic)!;
    return { ordering, keepSettledMs: keepSettledMs === undefined ? 0 : kept === -1 ? Infinity : kept };
  }

  async has(topic: string): Promise<boolean> {
    return isKafkaName(topic) && (await this.#client.topics([topic])).length > 0;
  }

  async topics(): Promise<string[]> {
    const names = (await this.#client.topics(undefined)).map(({ name }) => name);
    return names.filter((name) => !isTierTopic(name) && !name.startsWith('__')).sort();
  }

  async send(topic: string, queue: QueueName, messages: readonly Message[]): Promise<undefined> {
    const now = this.#clock.epochMs();
    if (queue === 'hot') {
      await this.#outbox.send(await this.#records(topic, messages, now));
      return;
    }
    const byTier = new Map<Tier, Message[]>();
    for (const message of messages) {
      const tier = tierFor(this.#settings.tiers, message.delayMs);
      const sent = byTier.get(tier) ?? [];
      sent.push(this.#forOurGroup(message));
      byTier.set(tier, sent);
    }
    const records = await Promise.all(
      Array.from(byTier, async ([tier, sent]) => {
        await this.#ensureTier(topic, tier);
        return this.#records(tierTopic(topic, tier), sent, now);
      }),
    );
    await this.#outbox.send(records.flat());
  }

  open(topic: string, queue: QueueName, listener: Parameters<Carrier<KafkaHandle>['open']>[2]): TopicReader {
    const { group, tiers, sessionTimeoutMs, rebalanceTimeoutMs, onError } = this.#settings;
    const isHot = queue === 'hot';
    this.#used.add(topic);
    const reader = new TopicReader({
      client: this.#client,
      clock: this.#clock,
      ...{ sessionTimeoutMs, rebalanceTimeoutMs, listener, onError },
      group: groupOf(group, topic, queue),
      topics: async () => (isHot ? [topic] : await this.#existingTiers(topic)),
      timeOf: isHot ? () => ({ dueAt: 0 }) : (record) => timeOf(record, group, tiers.at(-1)!),
      sendAgain: (record) => this.#sendAgain(record),
    });
    this.#readers.set(`${queue} ${topic}`, reader);
    return reader;
  }

  async done(handles: readonly KafkaHandle[]): Promise<boolean[]> {
    const results: boolean[] = new Array(handles.length).fill(false);
    const byReader = new Map<TopicReader, number[]>();
    for (const [index, handle] of handles.entries()) {
      const reader = this.#readerOf(handle);
      if (!reader) continue;
      const indexes = byReader.get(reader) ?? [];
      indexes.push(index);
      byReader.set(reader, indexes);
    }
    await Promise.all(
      Array.from(byReader, async ([reader, indexes]) => {
        const answers = await reader.done(indexes.map((index) => handles[index]!));
        for (const [at, index] of indexes.entries()) results[index] = answers[at]!;
      }),
    );
    return results;
  }

  async release(handles: readonly KafkaHandle[]): Promise<void> {
    for (const reader of this.#readers.values())
      reader.release(handles.filter((handle) => this.#readerOf(handle) === reader));
  }

  async counts(topic: string): Promise<CarrierCounts> {
    const hot = await this.#undone(topic, 'hot', [topic]);
    const retry = await this.#undone(topic, 'retry', await this.#existingTiers(topic));
    return {
      waiting: hot.undone - hot.inFlight,
      delayed: retry.undone - retry.inFlight,
      delivered: hot.inFlight + retry.inFlight,
    };
  }

  async history(topic: string, range: Parameters<NonNullable<Carrier['history']>>[1]) {
    const { items, cursor } = await readHistory(
      this.#client,
      this.#historyLine,
      await this.#layout(topic),
      range,
    );
    return { items: items.map(readRecord), cursor };
  }

  /**
   * Deletes the records of retry topics that every group has handled. Kafka itself never deletes them,
   * because retry topics have no retention limit.
   */
  async sweep(limit: number): Promise<number> {
    let left = limit;
    for (const topic of this.#used) {
      const tiers = await this.#client.topics(this.#settings.tiers.map((tier) => tierTopic(topic, tier)));
      left -= await sweepTiers(this.#client, topic, tiers, left, () => this.#pause());
    }
    return limit - left;
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#readers.values(), (reader) => reader.close()));
    await Promise.all([this.#historyLine.close(), this.#client.close()]);
  }

  #readerOf({ window }: KafkaHandle): TopicReader | undefined {
    for (const reader of this.#readers.values())
      if (reader.windows.get(window.name) === window) return reader;
    return undefined;
  }

  /**
   * Adds the name of our group to a retry: only the group whose handler failed may read it. An event that is
   * published with a delay gets no group, because all groups read it.
   */
  #forOurGroup(message: Message): Message {
    const isCopy = [...this.#readers.values()].some((reader) =>
      reader.hasInFlight(message.dedupId.slice(0, -1)),
    );
    if (!isCopy) return message;
    return { ...message, headers: { ...message.headers, [groupHeader]: this.#settings.group } };
  }

  async #records(topic: string, messages: readonly Message[], now: number): Promise<NewRecord[]> {
    const { leaders } = await this.#layout(topic);
    // All events of this call that have no key go to one partition. This makes fewer and larger batches.
    const unkeyed = this.#nextPartition++ % leaders.length;
    return messages.map((message) => {
      const partition =
        message.key === undefined ? unkeyed : partitionOfKey(Buffer.from(message.key), leaders.length);
      return toRecord(message, { topic, partition }, now);
    });
  }

  async #sendAgain({ topic, partition, key, value, headers, at }: FetchedRecord): Promise<void> {
    const texts = { [firstSeenHeader]: String(at), ...readHeaders({ headers }) };
    await this.#outbox.send([
      {
        ...{ topic, partition, value: value ?? Buffer.alloc(0), headers: headerBytes(texts) },
        ...(key && { key }),
        timestamp: BigInt(this.#clock.epochMs()),
      },
    ]);
  }

  async #layout(topic: string): Promise<TopicLayout> {
    const known = this.#layouts.get(topic);
    if (known && known.until > this.#clock.now()) return known.layout;
    const [layout] = await this.#client.topics([topic]);
    if (!layout) throw new Error(`topic ${JSON.stringify(topic)} does not exist in Kafka`);
    this.#layouts.set(topic, { layout, until: this.#clock.now() + layoutAgeMs });
    return layout;
  }

  async #existingTiers(topic: string): Promise<string[]> {
    const names = this.#settings.tiers.map((tier) => tierTopic(topic, tier));
    return (await this.#client.topics(names)).map(({ name }) => name);
  }

  async #ensureTier(topic: string, tier: Tier): Promise<void> {
    const name = tierTopic(topic, tier);
    if (this.#layouts.has(name) || (await this.has(name))) return;
    await this.#create(this.#tierTopics(topic, this.#settings.tiers));
    this.#readers.get(`retry ${topic}`)?.topicsChanged();
  }

  #tierTopics(topic: string, tiers: readonly Tier[]): WantedTopic[] {
    const { partitions } = this.#settings;
    return tiers.map((tier) => ({
      name: tierTopic(topic, tier),
      partitions,
      retentionMs: -1,
      retentionMinMs: 2 * tier.ms,
    }));
  }

  #create(wanted: readonly WantedTopic[]): Promise<void> {
    const {
      partitionsDefault: partitions,
      replication,
      createTopics: mayCreate,
      connection,
    } = this.#settings;
    const bootstrapServer = connection.brokers.map(({ host, port }) => `${host}:${port}`).join(',');
    return ensureTopics(this.#client, this.#clock, wanted, {
      partitions,
      replication,
      mayCreate,
      bootstrapServer,
    });
  }

  async #undone(
    topic: string,
    queue: QueueName,
    names: readonly string[],
  ): Promise<{ undone: number; inFlight: number }> {
    const layouts = await this.#client.topics(names);
    if (layouts.length === 0) return { undone: 0, inFlight: 0 };
    const wanted = layouts.map(({ name, leaders }) => ({ topic: name, partitions: [...leaders.keys()] }));
    const group = groupOf(this.#settings.group, topic, queue);
    const committed = await committedOffsetsSoon(this.#client, group, wanted, () => this.#pause());
    const windows = this.#readers.get(`${queue} ${topic}`)?.windows;
    let undone = 0;
    let inFlight = 0;
    for (const layout of layouts) {
      const ends = await listOffsets(this.#client, layout, 'end');
      const first = await listOffsets(this.#client, layout, 'first');
      for (const { topic, partition, offset, metadata } of committed) {
        if (topic !== layout.name) continue;
        const own = windows?.get(`${topic}/${partition}`);
        const window =
          own ?? new PartitionWindow(topic, partition, Math.max(offset, first[partition]!), metadata);
        undone += window.undone(ends[partition]!);
        inFlight += own?.inFlight.size ?? 0;
      }
    }
    return { undone, inFlight };
  }

  #pause(): Promise<void> {
    return new Pause(this.#clock).wait(pauseMs);
  }
}

/**
 * The topic and its retry topics have separate consumer groups. A rebalance of one group does not stop the
 * other.
 */
function groupOf(group: string, topic: string, queue: QueueName): string {
  return queue === 'hot' ? `${group}.${topic}` : `${group}.${topic}.retry`;
}

function timeOf(record: RawRecord, group: string, last: Tier): DeliveryTime | undefined {
  const headers = readHeaders(record);
  if ((headers[groupHeader] ?? group) !== group) return undefined;
  const dueAt = Number(headers[dueHeader] ?? 0) || 0;
  const hopAt = record.at + last.ms;
  // A record with a much longer delay than the longest tier would block later records of its partition. So it
  // is sent to the end of its topic again after `last.ms`.
  const isSentAgain = dueAt > hopAt + last.ms;
  return isSentAgain ? { dueAt: hopAt, isSentAgain } : { dueAt };
}

function isKafkaName(topic: string): boolean {
  return /^[\w.-]{1,249}$/.test(topic);
}

function longestSuffix(tiers: readonly Tier[], parkedSuffix: string): number {
  return Math.max(...tiers.map((tier) => tierTopic('', tier).length)) + parkedSuffix.length;
}
