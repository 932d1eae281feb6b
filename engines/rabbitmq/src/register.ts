import type { Channel, GetMessage } from 'amqplib';
import { type Clock, type Random, sleep } from 'holdfast';
import type { Names } from './names.ts';
import { RabbitmqError, replies, replyOf } from './rabbitmq-errors.ts';
import type { Session } from './session.ts';

export interface RegisterSettings {
  readonly session: Session;
  readonly names: Names;
  readonly clock: Clock;
  readonly random: Random;
  readonly timeoutMs: number;
  readonly declare: () => Promise<void>;
  /** Publishes a message to the queue of topic names. Resolves when the queue has stored it. */
  readonly publish: (content: Buffer) => Promise<void>;
}

const pauseMs = 20;

/**
 * Stores the names of all topics in one message of a queue, because AMQP cannot list queues. If a process
 * crashes during a write, the queue has two messages, and the names of both are used.
 */
export class Register {
  readonly #settings: RegisterSettings;
  readonly #written = new Set<string>();
  #declaring: Promise<void> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(settings: RegisterSettings) {
    this.#settings = settings;
  }

  async add(topics: readonly string[]): Promise<void> {
    const wanted = topics.filter((topic) => !this.#written.has(topic));
    if (wanted.length === 0) return;
    await this.#locked(async (channel, messages) => {
      const before = namesIn(messages);
      const after = new Set([...before, ...wanted]);
      if (after.size > before.size) {
        await this.#settings.publish(Buffer.from(JSON.stringify([...after])));
        for (const message of messages) channel.ack(message);
      }
    });
    for (const topic of wanted) this.#written.add(topic);
  }

  async list(): Promise<string[]> {
    return this.#locked(async (_, messages) => [...namesIn(messages)]);
  }

  /**
   * Runs `work` while this process has the lock. The lock belongs to the connection, so it does not protect
   * two calls of the same process from each other. So the calls also wait for one another.
   */
  #locked<T>(work: (channel: Channel, messages: GetMessage[]) => Promise<T>): Promise<T> {
    const turn = this.#last.then(() => this.#withLock(work));
    this.#last = turn.catch(() => {});
    return turn;
  }

  async #withLock<T>(work: (channel: Channel, messages: GetMessage[]) => Promise<T>): Promise<T> {
    const { session, names } = this.#settings;
    await this.#declared();
    const hasLock = await this.#lock();
    try {
      return await session.withChannel((channel) => this.#read(channel, work));
    } finally {
      if (hasLock) await session.withChannel((channel) => channel.deleteQueue(names.lock)).catch(() => {});
    }
  }

  /**
   * Takes the lock by creating the lock queue. Returns false if this user may not create it. The caller then
   * reads without the lock, and may miss a name that another process is writing.
   */
  async #lock(): Promise<boolean> {
    const { session, names, clock, random, timeoutMs } = this.#settings;
    const lock = { exclusive: true, durable: false };
    for (const endsAt = clock.now() + timeoutMs; ; await sleep(clock, pauseMs * (0.5 + random()))) {
      try {
        await session.withChannel((channel) => channel.assertQueue(names.lock, lock));
        return true;
      } catch (error) {
        if (replyOf(error) === replies.accessRefused) return false;
        if (replyOf(error) !== replies.locked) throw error;
        if (clock.now() > endsAt)
          throw new RabbitmqError(
            'UNANSWERED',
            `another process has locked the names of the topics for ${timeoutMs} ms`,
            { cause: error },
          );
      }
    }
  }

  #declared(): Promise<void> {
    this.#declaring ??= this.#settings.declare().catch((error) => {
      this.#declaring = undefined;
      throw error;
    });
    return this.#declaring;
  }

  async #read<T>(
    channel: Channel,
    work: (channel: Channel, messages: GetMessage[]) => Promise<T>,
  ): Promise<T> {
    const { register } = this.#settings.names;
    const messages: GetMessage[] = [];
    for (;;) {
      const message = await channel.get(register);
      if (!message) break;
      messages.push(message);
    }
    const result = await work(channel, messages);
    channel.nackAll(true);
    // The answer of `checkQueue` shows that the messages are in the queue again, so the next process can read
    // them.
    await channel.checkQueue(register);
    return result;
  }
}

function namesIn(messages: readonly GetMessage[]): Set<string> {
  return new Set(messages.flatMap(({ content }) => JSON.parse(content.toString()) as string[]));
}
