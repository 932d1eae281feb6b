import { type Ordering, TopicError } from '@holdfast/contracts';
import type { QueueName } from '@holdfast/contracts/carrier';
import type { Clock, Random } from 'holdfast';
import { Ladder } from './ladder.ts';
import type { Names } from './names.ts';
import type { Publisher } from './publisher.ts';
import { RabbitmqError, replies, replyOf, saidBy } from './rabbitmq-errors.ts';
import { Register } from './register.ts';
import type { Session } from './session.ts';

export interface TopologySettings {
  readonly session: Session;
  readonly publisher: Publisher;
  readonly names: Names;
  readonly clock: Clock;
  readonly random: Random;
  readonly timeoutMs: number;
  /** How many servers keep a copy of a queue; `undefined`: as the server is configured. */
  readonly replicas: number | undefined;
  readonly vhost: string;
  /**
   * True: a second engine stores the retries. In this case, the delay queues are created only when a message
   * needs them.
   */
  readonly hasStore: boolean;
}

/**
 * After this many deliveries, the server drops an event. This must never happen, so the limit is very large.
 * Our consumer limits the attempts.
 */
const deliveryLimit = 1_000_000_000;

const registerProperties = { persistent: true, mandatory: true, messageId: 'topics' };

/** Creates the queues of topics, and the delay queues that all topics share. */
export class Topology {
  readonly ladder: Ladder;
  readonly #settings: TopologySettings;
  readonly #quorum: object;
  readonly #register: Register;
  /** Topics that this process has declared. */
  readonly #known = new Map<string, Ordering>();
  /**
   * Topics that other processes have declared. `restore` does not create them again: we do not know their
   * settings.
   */
  readonly #probed = new Map<string, Ordering>();
  /** Topics with a retry queue that is bound to the exchange of due messages. */
  readonly #bound = new Set<string>();
  #ladderIsThere: Promise<void> | undefined;

  constructor(settings: TopologySettings) {
    const { names, replicas, publisher } = settings;
    this.#settings = settings;
    this.#quorum = {
      'x-queue-type': 'quorum',
      ...(replicas !== undefined && { 'x-quorum-initial-group-size': replicas }),
    };
    this.ladder = new Ladder(names, this.#quorum);
    this.#register = new Register({
      ...settings,
      declare: () => this.#declareQueue(names.register, this.#queueArguments('none')),
      publish: (content) =>
        publisher.publish([
          { exchange: '', routingKey: names.register, content, properties: registerProperties },
        ]),
    });
  }

  async ensure(topic: string, ordering: Ordering): Promise<void> {
    await this.#declareTopic(topic, ordering);
    if (!this.#settings.hasStore) await this.bind(topic);
    await this.#register.add([topic]);
  }

  /**
   * Creates the queues of a topic again, if this process has declared the topic and they were deleted since.
   */
  async restore(topic: string): Promise<void> {
    const ordering = this.#known.get(topic);
    if (ordering === undefined) return;
    const wasBound = this.#bound.delete(topic);
    if (wasBound) this.#ladderIsThere = undefined;
    await this.#declareTopic(topic, ordering);
    if (wasBound) await this.bind(topic);
  }

  async has(topic: string): Promise<boolean> {
    return this.#known.has(topic) || this.#exists(this.#settings.names.queue(topic, 'hot'));
  }

  async topics(): Promise<string[]> {
    const listed = await this.#register.list();
    const exist = await Promise.all(listed.map((topic) => this.has(topic)));
    return listed.filter((_, index) => exist[index]);
  }

  /**
   * Returns whether a topic keeps the order of keys. If another process declared the topic, its queue is
   * declared again with the arguments for ordered keys. The server refuses this if the queue is not ordered.
   */
  async orderingOf(topic: string): Promise<Ordering> {
    const known = this.#known.get(topic) ?? this.#probed.get(topic);
    if (known) return known;
    const { session, names } = this.#settings;
    const wanted = { durable: true, arguments: this.#queueArguments('key') };
    const ordering = await session
      .withChannel((channel) => channel.assertQueue(names.queue(topic, 'hot'), wanted))
      .then(
        () => 'key' as const,
        (error) => {
          // The server did not reply, so the ordering is unknown. The caller tries again.
          if (replyOf(error) === undefined) throw error;
          return 'none' as const;
        },
      );
    this.#probed.set(topic, ordering);
    return ordering;
  }

  /** Binds the retry queue of a topic to the exchange where messages arrive after their delay. */
  async bind(topic: string): Promise<void> {
    if (this.#bound.has(topic)) return;
    const { session, names } = this.#settings;
    this.#ladderIsThere ??= this.#declareLadder().catch((error) => {
      this.#ladderIsThere = undefined;
      throw error;
    });
    await this.#ladderIsThere;
    const { key, exchange } = this.ladder.end(topic);
    const queue = names.queue(topic, 'retry');
    await session.withChannel((channel) => channel.bindQueue(queue, exchange, key));
    this.#bound.add(topic);
  }

  /** How many messages wait in a queue and are not delivered to any consumer. */
  async waiting(topic: string, queue: QueueName): Promise<number> {
    const { session, names } = this.#settings;
    const { messageCount } = await session.withChannel((channel) =>
      channel.checkQueue(names.queue(topic, queue)),
    );
    return messageCount;
  }

  async #declareTopic(topic: string, ordering: Ordering): Promise<void> {
    const { names } = this.#settings;
    try {
      await this.#declareQueue(names.queue(topic, 'hot'), this.#queueArguments(ordering));
      await this.#declareQueue(names.queue(topic, 'retry'), this.#queueArguments('none'));
    } catch (error) {
      if (replyOf(error) !== replies.otherArguments) throw error;
      throw new TopicError(
        topic,
        `has a queue with other arguments in RabbitMQ (${saidBy(error)}): delete the queue when it is empty, or use another topic`,
      );
    }
    this.#known.set(topic, ordering);
  }

  /**
   * Creates the delay queues. The shortest delay comes first, because the queue of a longer delay needs the
   * exchange of the next shorter one. Two processes may do this at the same time.
   */
  async #declareLadder(): Promise<void> {
    const { session } = this.#settings;
    await this.#declareExchange(this.ladder.due);
    for (const { name, queueArguments, below, stops, passes } of this.ladder.levels()) {
      await this.#declareExchange(name);
      await this.#declareQueue(name, queueArguments);
      await session.withChannel(async (channel) => {
        await channel.bindQueue(name, name, stops);
        await channel.bindExchange(below, name, passes);
      });
    }
  }

  #queueArguments(ordering: Ordering): object {
    return {
      ...this.#quorum,
      'x-delivery-limit': deliveryLimit,
      // The server delivers to one process at a time. When that process disconnects, the next process
      // continues with the first unacknowledged message.
      ...(ordering === 'key' && { 'x-single-active-consumer': true }),
    };
  }

  async #declareQueue(name: string, queueArguments: object): Promise<void> {
    const { session, vhost } = this.#settings;
    const wanted = { durable: true, arguments: queueArguments };
    const command = `rabbitmqadmin --vhost='${vhost}' declare queue name='${name}' durable=true arguments='${JSON.stringify(queueArguments)}'`;
    await this.#declare(
      () => session.withChannel((channel) => channel.assertQueue(name, wanted)),
      () => session.withChannel((channel) => channel.checkQueue(name)),
      { what: `queue "${name}"`, command },
    );
  }

  async #declareExchange(name: string): Promise<void> {
    const { session, vhost } = this.#settings;
    const command = `rabbitmqadmin --vhost='${vhost}' declare exchange name='${name}' type=topic durable=true`;
    await this.#declare(
      () => session.withChannel((channel) => channel.assertExchange(name, 'topic', { durable: true })),
      () => session.withChannel((channel) => channel.checkExchange(name)),
      { what: `exchange "${name}"`, command },
    );
  }

  /** Creates a queue or exchange. If this user may not create it, it is enough that it exists. */
  async #declare(
    create: () => Promise<unknown>,
    check: () => Promise<unknown>,
    { what, command }: { readonly what: string; readonly command: string },
  ): Promise<void> {
    try {
      await create();
    } catch (error) {
      if (replyOf(error) !== replies.accessRefused) throw error;
      await check().catch((missing) => {
        if (replyOf(missing) !== replies.notFound) throw missing;
        throw new RabbitmqError(
          'REFUSED',
          `RabbitMQ does not let this user create the ${what}: create it with ${command}`,
          { cause: error },
        );
      });
    }
  }

  async #exists(queue: string): Promise<boolean> {
    try {
      await this.#settings.session.withChannel((channel) => channel.checkQueue(queue));
      return true;
    } catch (error) {
      if (replyOf(error) === replies.notFound) return false;
      throw error;
    }
  }
}
