import type { ConnectionOptions } from 'node:tls';
import type { CarrierOptions } from '@holdfast/contracts/carrier';
import { carrierDefaults } from '@holdfast/contracts/carrier';
import { type Clock, type Duration, durationMs, OptionsError, systemClock } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { type KafkaConnection, type KafkaSasl, readBroker, readUrl } from './kafka-connection.ts';
import { defaultTiers, readTiers, type Tier } from './tiers.ts';

/** The options of `openKafka`. Only the address of the servers is required: `url` or `brokers`. */
export interface KafkaOptions extends CarrierOptions {
  /**
   * The address of the servers: `kafka://host:9092,other:9092`, with TLS `kafkas://…`, with a password
   * `kafkas://user:password@…`. Give either `url` or `brokers`. Default: none.
   */
  readonly url?: string | undefined;
  /**
   * The addresses of some servers, such as `localhost:9092`. These servers name the other servers. Default:
   * none.
   */
  readonly brokers?: readonly string[] | undefined;
  /**
   * The name of the consumer group. Processes of one group divide the events of a topic among them. In Kafka,
   * the group of a topic is `<group>.<topic>`, and the group of its retry topics is `<group>.<topic>.retry`.
   * Default: `holdfast`.
   */
  readonly group?: string | undefined;
  /**
   * How many partitions each topic has. A topic that exists with another number is an error. Default: any,
   * and `3` for new topics.
   */
  readonly partitions?: number | undefined;
  /** How many servers keep a copy of a new topic. Default: as the servers are configured. */
  readonly replication?: number | undefined;
  /**
   * False: the engine never creates topics. If a topic is missing, the error contains the command that
   * creates it. Default: `true`.
   */
  readonly createTopics?: boolean | undefined;
  /**
   * How long a new topic keeps its events. After that, Kafka deletes also events that were not handled.
   * Default: `7d`.
   */
  readonly retention?: Duration | undefined;
  /**
   * The tiers of retry delays. Each tier has a topic, such as `orders.retry.10s`. A retry goes to the longest
   * tier that is not longer than its delay. Default: `1s`, `10s`, `1m`, `10m`, `1h`.
   */
  readonly tiers?: readonly Duration[] | undefined;
  /** If a process sends no heartbeat for this time, other processes get its partitions. Default: `10s`. */
  readonly sessionTimeout?: Duration | undefined;
  /** How long a rebalance of the partitions waits for a process that does not join it. Default: `30s`. */
  readonly rebalanceTimeout?: Duration | undefined;
  /** The name of this process in the logs of the servers. Default: `holdfast`. */
  readonly clientId?: string | undefined;
  /** Options of Node for TLS connections, such as `ca`. Default: none, or the system's authorities with `kafkas://`. */
  readonly tls?: ConnectionOptions | undefined;
  /** How to log in. Default: none. */
  readonly sasl?: KafkaSasl | undefined;
  /** Called when a connection is lost, or when Kafka deleted events before they were read. Default: none. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

const known: Readonly<Record<keyof KafkaOptions, true>> = {
  url: true,
  brokers: true,
  group: true,
  partitions: true,
  replication: true,
  createTopics: true,
  retention: true,
  tiers: true,
  sessionTimeout: true,
  rebalanceTimeout: true,
  clientId: true,
  tls: true,
  sasl: true,
  onError: true,
  store: true,
  parkedSuffix: true,
  prefetchMax: true,
  prefetchBytesMax: true,
  idleMs: true,
  clock: true,
  random: true,
};

/** The options of `kafkaCarrier`, checked and with all defaults filled in. */
export interface KafkaSettings {
  readonly connection: KafkaConnection;
  readonly group: string;
  readonly partitions: number | undefined;
  readonly partitionsDefault: number;
  readonly replication: number;
  readonly createTopics: boolean;
  readonly retentionMs: number;
  readonly tiers: readonly Tier[];
  readonly parkedSuffix: string;
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
  readonly clock: Clock;
  onError(error: unknown): void;
}

const partitionsDefault = 3;
const asConfigured = -1;

export function readOptions(options: KafkaOptions): KafkaSettings {
  assertKnownFields(known, options);
  const { group = 'holdfast', partitions, replication, onError = () => {} } = options;
  assertText('group', group);
  assertCount('partitions', partitions);
  assertCount('replication', replication);
  return {
    connection: readConnection(options),
    ...{ group, partitions, partitionsDefault, onError },
    replication: replication ?? asConfigured,
    createTopics: options.createTopics ?? true,
    retentionMs: durationMs(options.retention ?? '7d'),
    tiers: readTiers(options.tiers ?? defaultTiers),
    parkedSuffix: options.parkedSuffix ?? carrierDefaults.parkedSuffix,
    sessionTimeoutMs: durationMs(options.sessionTimeout ?? '10s'),
    rebalanceTimeoutMs: durationMs(options.rebalanceTimeout ?? '30s'),
    clock: options.clock ?? systemClock,
  };
}

function readConnection({ url, brokers, clientId = 'holdfast', tls, sasl }: KafkaOptions): KafkaConnection {
  assertText('clientId', clientId);
  if ((url === undefined) === (brokers === undefined))
    throw new OptionsError(
      'url',
      undefined,
      'an address such as "kafka://localhost:9092", or "brokers" instead',
    );
  if (brokers !== undefined && (!Array.isArray(brokers) || brokers.length === 0))
    throw new OptionsError('brokers', brokers, 'a list of addresses such as "localhost:9092"');
  const read =
    url === undefined
      ? { brokers: brokers!.map((text, index) => readBroker(`brokers[${index}]`, text)) }
      : readUrl(url);
  return { tls: undefined, sasl: undefined, ...read, clientId, ...(tls && { tls }), ...(sasl && { sasl }) };
}

function assertText(path: string, text: string): void {
  if (typeof text !== 'string' || !/^\S+$/.test(text))
    throw new OptionsError(path, text, 'a text without spaces');
}

function assertCount(path: string, count: number | undefined): void {
  if (count !== undefined && !(Number.isInteger(count) && count >= 1))
    throw new OptionsError(path, count, 'a whole number from 1');
}
