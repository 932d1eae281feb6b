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
   * Where the servers are: `kafka://host:9092,other:9092`, with TLS `kafkas://…`, with a password
   * `kafkas://user:password@…`. Give either `url` or `brokers`. Default: none.
   */
  readonly url?: string | undefined;
  /** The addresses of some servers, such as `localhost:9092`. The others are found through them. Default: none. */
  readonly brokers?: readonly string[] | undefined;
  /**
   * Processes with the same name divide the events of a topic among them. Kafka knows the group as `<group>.<topic>`, and
   * the one of retries as `<group>.<topic>.retry`. Default: `holdfast`.
   */
  readonly group?: string | undefined;
  /** How many partitions a topic has. A topic with another number is refused. Default: any, and `3` for new topics. */
  readonly partitions?: number | undefined;
  /** How many servers keep a copy of a new topic. Default: as the servers are configured. */
  readonly replication?: number | undefined;
  /** False: topics are never created. What is missing is an error that says the command to run. Default: `true`. */
  readonly createTopics?: boolean | undefined;
  /** How long a new topic keeps events, done or not. Default: `7d`. */
  readonly retention?: Duration | undefined;
  /** The classes of delays. Each has a topic, such as `orders.retry.10s`. Default: `1s`, `10s`, `1m`, `10m`, `1h`. */
  readonly tiers?: readonly Duration[] | undefined;
  /** If a process is silent for this long, others get its partitions. Default: `10s`. */
  readonly sessionTimeout?: Duration | undefined;
  /** How long others wait for a process when partitions are divided anew. Default: `30s`. */
  readonly rebalanceTimeout?: Duration | undefined;
  /** The name of this process in the logs of the servers. Default: `holdfast`. */
  readonly clientId?: string | undefined;
  /** Options of Node for TLS connections, such as `ca`. Default: none, or the system's authorities with `kafkas://`. */
  readonly tls?: ConnectionOptions | undefined;
  /** How to log in. Default: none. */
  readonly sasl?: KafkaSasl | undefined;
  /** Called when a connection is lost, or when Kafka has deleted events that were not read. Default: none. */
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

/** The options that a carrier needs, all of them known. */
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
