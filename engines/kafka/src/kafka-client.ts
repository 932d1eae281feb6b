import {
  Admin,
  type API,
  type Broker,
  type Connection,
  ConnectionPool,
  compatibilityPartitioner,
  cooperativeStickyAssigner,
  decodeConsumerProtocolAssignment,
  decodeConsumerProtocolSubscription,
  encodeConsumerProtocolAssignment,
  encodeConsumerProtocolSubscription,
  kGetApi,
  Producer,
  protocolErrorsCodesById,
  Reader,
} from '@platformatic/kafka';
import type { KafkaConnection } from './kafka-connection.ts';

/**
 * The only file that imports `@platformatic/kafka`. We use its connections, its protocol and its producer,
 * but not its consumer. That consumer stops for ever when a broker restarts, and can overwrite offsets after
 * its removal from the group.
 */

export interface NewRecord {
  readonly topic: string;
  readonly partition: number;
  readonly key?: Buffer;
  readonly value: Buffer;
  readonly headers: Map<Buffer, Buffer>;
  readonly timestamp: bigint;
}

/** The server answered with an error code, such as `NOT_COORDINATOR`. */
export class KafkaAnswerError extends Error {
  readonly answer: string;

  constructor(call: string, answer: string) {
    super(`Kafka answered ${call} with ${answer}`);
    this.name = 'KafkaAnswerError';
    this.answer = answer;
  }
}

export function answerOf(error: unknown): string | undefined {
  return error instanceof KafkaAnswerError ? error.answer : undefined;
}

const passing = new Set([
  ...[
    'COORDINATOR_NOT_AVAILABLE',
    'COORDINATOR_LOAD_IN_PROGRESS',
    'NOT_COORDINATOR',
    'NOT_LEADER_OR_FOLLOWER',
  ],
  ...['LEADER_NOT_AVAILABLE', 'UNKNOWN_TOPIC_OR_PARTITION', 'UNKNOWN_TOPIC_ID', 'REBALANCE_IN_PROGRESS'],
]);

/** True for a temporary error of the server, for example while a topic is new or a broker starts. */
export function isPassing(error: unknown): boolean {
  return passing.has(answerOf(error) ?? '');
}

export function answerName(code: number): string {
  return (protocolErrorsCodesById as { readonly [code: number]: string })[code] ?? String(code);
}

export function throwAnswer(call: string, code: number): void {
  if (code !== 0) throw new KafkaAnswerError(call, answerName(code));
}

export interface TopicLayout {
  readonly name: string;
  readonly id: string;
  /** By partition: the id of the broker that leads it, or −1 while it has no leader. */
  readonly leaders: readonly number[];
}

/**
 * Sends requests over its own connections. Kafka answers the requests of one connection in order, so a slow
 * request needs its own `Line`.
 */
export interface Line {
  request<Response>(node: number | undefined, api: string, args: ArgumentsOf): Promise<Response>;
  close(): Promise<void>;
}

/**
 * The arguments of a request. If they depend on the protocol version, a function gets the version and returns
 * them.
 */
export type ArgumentsOf = readonly unknown[] | ((version: number) => readonly unknown[]);

export class KafkaClient {
  readonly #admin: Admin;
  readonly #options: ReturnType<typeof clientOptions>;
  readonly #brokers = new Map<number, Broker>();
  #producer: Producer | undefined;
  readonly #main: Line;

  constructor(connection: KafkaConnection) {
    this.#options = clientOptions(connection);
    this.#admin = new Admin(this.#options);
    this.#main = this.newLine();
  }

  newLine(): Line {
    const pool = new ConnectionPool(this.#options.clientId, this.#options);
    return {
      request: async <Response>(node: number | undefined, name: string, args: ArgumentsOf) => {
        const api = await this.#api(name);
        const connection = await this.#connect(pool, node);
        return send<Response>(api, connection, typeof args === 'function' ? args(api.version) : args);
      },
      close: () => pool.close(),
    };
  }

  /** Sends a request to the broker `node`, or to any broker if `node` is not given. */
  request<Response>(api: string, args: ArgumentsOf, node?: number): Promise<Response> {
    return this.#main.request(node, api, args);
  }

  /**
   * Returns the topics of `names` that exist; `undefined`: all topics. Also updates the addresses of the
   * brokers.
   */
  async topics(names: readonly string[] | undefined): Promise<TopicLayout[]> {
    const { brokers, topics } = await this.request<MetadataAnswer>('Metadata', [names ?? null, false, false]);
    this.#brokers.clear();
    for (const { nodeId, host, port } of brokers) this.#brokers.set(nodeId, { host, port });
    const layouts: TopicLayout[] = [];
    for (const { name, topicId, errorCode, isInternal, partitions } of topics) {
      const answer = answerName(errorCode);
      if (answer === 'UNKNOWN_TOPIC_OR_PARTITION' || isInternal || name === null) continue;
      if (answer !== 'LEADER_NOT_AVAILABLE') throwAnswer(`a question for topic ${name}`, errorCode);
      const leaders: number[] = [];
      for (const { partitionIndex, leaderId } of partitions) leaders[partitionIndex] = leaderId;
      layouts.push({ name, id: topicId ?? name, leaders });
    }
    return layouts;
  }

  async nodes(): Promise<number[]> {
    await this.topics([]);
    return [...this.#brokers.keys()];
  }

  async coordinatorOf(group: string): Promise<number> {
    const { coordinators } = await this.request<{ coordinators: { nodeId: number; errorCode: number }[] }>(
      'FindCoordinator',
      [0, [group]],
    );
    const [found] = coordinators;
    throwAnswer(`the search for the coordinator of group ${group}`, found!.errorCode);
    if (!this.#brokers.has(found!.nodeId)) await this.topics([]);
    return found!.nodeId;
  }

  /**
   * Resolves when all in-sync replicas have stored all records. When an answer is lost, the producer repeats
   * the request, and Kafka stores the records only once.
   */
  async produce(records: NewRecord[]): Promise<void> {
    this.#producer ??= new Producer({ ...this.#options, idempotent: true });
    try {
      await this.#producer.send({ messages: records });
    } catch (error) {
      // A request of the failed producer may still arrive at Kafka. A new producer has its own sequence
      // numbers, which cannot collide with the numbers of that request.
      const failed = this.#producer;
      this.#producer = undefined;
      await failed.close().catch(() => {});
      throw error;
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#producer?.close(), this.#admin.close(), this.#main.close()]);
  }

  #api(name: string): Promise<API<unknown[], unknown>> {
    return new Promise((resolve, reject) => {
      this.#admin[kGetApi]<unknown[], unknown>(name, (error, api) => (error ? reject(error) : resolve(api!)));
    });
  }

  #connect(pool: ConnectionPool, node: number | undefined): Promise<Connection> {
    if (node === undefined)
      return pool.getFirstAvailable([...this.#brokers.values(), ...this.#options.bootstrapBrokers]);
    const broker = this.#brokers.get(node);
    if (!broker) throw new KafkaAnswerError(`a request to broker ${node}`, 'BROKER_NOT_AVAILABLE');
    return pool.get(broker);
  }
}

interface MetadataAnswer {
  readonly brokers: readonly { nodeId: number; host: string; port: number }[];
  readonly topics: readonly {
    readonly name: string | null;
    readonly topicId?: string;
    readonly errorCode: number;
    readonly isInternal: boolean;
    readonly partitions: readonly { partitionIndex: number; leaderId: number }[];
  }[];
}

const requestTimeoutMs = 30_000;
const connectTimeoutMs = 3000;

function clientOptions({ brokers, clientId, tls, sasl }: KafkaConnection) {
  return {
    clientId,
    bootstrapBrokers: brokers.map(({ host, port }) => ({ host, port })),
    connectTimeout: connectTimeoutMs,
    requestTimeout: requestTimeoutMs,
    timeout: requestTimeoutMs,
    retries: 10,
    retryDelay: 200,
    ...(tls && { tls: tls as object }),
    ...(sasl && { sasl: sasl as never }),
  };
}

/**
 * Sends a request. The promise resolves even if the response contains error codes: these codes belong to
 * single partitions, and the caller reads them.
 */
function send<Response>(
  api: API<unknown[], unknown>,
  connection: Connection,
  args: readonly unknown[],
): Promise<Response> {
  return new Promise((resolve, reject) => {
    api(
      inOnePiece(connection),
      ...args,
      (error: (Error & { response?: unknown }) | null, response?: unknown) => {
        const answer = response ?? error?.response;
        if (answer === undefined) reject(error);
        else resolve(answer as Response);
      },
    );
  });
}

/**
 * A large response arrives in many pieces, and the client library searches the piece of each field that it reads. So all
 * pieces are joined into one before the library reads them.
 */
function inOnePiece(connection: Connection): Connection {
  const send: Connection['send'] = (key, version, payload, parse, ...more) =>
    connection.send(
      key,
      version,
      payload,
      (id, key, version, { buffer }) => parse(id, key, version, Reader.from(buffer.buffer)),
      ...more,
    );
  return { send } as Connection;
}

/** Returns the same partition for a key as Kafka's Java clients choose. */
export function partitionOfKey(key: Buffer, partitions: number): number {
  return compatibilityPartitioner({ topic: '' }, key) % partitions;
}

export interface Assigned {
  readonly topic: string;
  readonly partitions: number[];
}

export const assignorName = 'cooperative-sticky';
const subscriptionVersion = 2;

export function writeSubscription(
  topics: readonly string[],
  owned: readonly Assigned[],
  generation: number,
): Buffer {
  return encodeConsumerProtocolSubscription({
    version: subscriptionVersion,
    topics: [...topics],
    ownedPartitions: [...owned],
    generationId: generation,
  });
}

export function readAssignment(assignment: Buffer): Assigned[] {
  return assignment.length === 0 ? [] : decodeConsumerProtocolAssignment(assignment).assignedPartitions;
}

/** The topics that at least one member of a group subscribes to. */
export function subscribedTopics(members: readonly GroupMember[]): string[] {
  return [...new Set(members.flatMap(({ metadata }) => decodeConsumerProtocolSubscription(metadata).topics))];
}

export interface GroupMember {
  readonly memberId: string;
  readonly metadata: Buffer;
}

/**
 * Divides the partitions evenly among the members of a group. A member keeps as many of its partitions as
 * possible.
 */
export function assignPartitions(
  self: string,
  members: readonly GroupMember[],
  layouts: readonly TopicLayout[],
): { memberId: string; assignment: Buffer }[] {
  const subscriptions = new Map(
    members.map(({ memberId, metadata }) => {
      const { userData, ...subscription } = decodeConsumerProtocolSubscription(metadata);
      return [memberId, { ...subscription, metadata: userData, memberId }];
    }),
  );
  const known = new Map(
    layouts.map(({ name, id, leaders }) => [
      name,
      { id, partitions: [], partitionsCount: leaders.length, lastUpdate: 0 },
    ]),
  );
  const cluster = { id: '', brokers: new Map(), controllerId: 0, topics: known, lastUpdate: 0 };
  return cooperativeStickyAssigner(self, subscriptions, new Set(known.keys()), cluster).map(
    ({ memberId, assignments }) => ({
      memberId,
      assignment: encodeConsumerProtocolAssignment({
        version: subscriptionVersion,
        assignedPartitions: [...assignments.values()],
      }),
    }),
  );
}
