import { randomUUID } from 'node:crypto';
import { missing, type Payload, type SizeLimits } from '@holdfast/contracts';
import type { Arrival, Carrier, Message, QueueName } from '@holdfast/contracts/carrier';
import type { HeldChannel, RabbitmqHandle } from './held-channel.ts';
import { delayMaxMs } from './ladder.ts';
import { decodeHeaders, encodeHeaders, toProperties } from './message-text.ts';
import { Names } from './names.ts';
import { type Publication, Publisher } from './publisher.ts';
import { QueueConsumer } from './queue-consumer.ts';
import { Session, type SessionSettings } from './session.ts';
import { Topology } from './topology.ts';

export interface RabbitmqCarrierSettings extends SessionSettings {
  readonly limits: SizeLimits;
  readonly prefix: string;
  readonly vhost: string;
  readonly replicas: number | undefined;
  readonly prefetchMax: number;
  readonly hasStore: boolean;
}

/**
 * Sends and receives events through quorum queues: two for each topic, and the delay queues that all topics
 * share.
 */
export function rabbitmqCarrier(settings: RabbitmqCarrierSettings): Carrier<RabbitmqHandle> {
  const { clock, limits, prefetchMax, timeoutMs } = settings;
  // During a memory or disk alarm, the server blocks every connection that publishes. Acknowledgements use a
  // second connection, so that they are not blocked.
  const sending = new Session(settings);
  const session = new Session(settings);
  const names = new Names(settings.prefix);
  const publisher = new Publisher(sending, clock, timeoutMs);
  const topology = new Topology({ ...settings, session, publisher, names });
  const consumers = new Map<string, Map<QueueName, QueueConsumer>>();
  const consumerOf = new WeakMap<HeldChannel, QueueConsumer>();
  const newId = strangerIds();
  /**
   * Topics whose last publish failed, perhaps because a queue was deleted. `publish` creates their queues
   * again.
   */
  const doubtful = new Set<string>();

  async function publish(topic: string, delayed: boolean, publications: Publication[]): Promise<void> {
    if (doubtful.has(topic)) await topology.restore(topic);
    doubtful.delete(topic);
    if (delayed) await topology.bind(topic);
    try {
      await publisher.publish(publications);
    } catch (error) {
      doubtful.add(topic);
      throw error;
    }
  }

  function routeOf(topic: string, queue: QueueName, delayMs: number) {
    return queue === 'retry' && delayMs > 0
      ? topology.ladder.route(topic, delayMs)
      : { exchange: '', routingKey: names.queue(topic, queue) };
  }

  function publication(topic: string, queue: QueueName, message: Message): Publication {
    return {
      ...routeOf(topic, queue, message.delayMs),
      content: bytesOf(message.payload),
      properties: toProperties(message, clock.epochMs()),
    };
  }

  function arrivalOf(topic: string, handle: RabbitmqHandle, askedAt: number): Arrival<RabbitmqHandle> {
    const { content, properties } = handle.message;
    const { timestamp } = properties;
    return {
      handle,
      messageId:
        typeof properties.messageId === 'string' && properties.messageId !== ''
          ? properties.messageId
          : newId(topic),
      headers: decodeHeaders(properties),
      payload: content,
      key: undefined,
      at: typeof timestamp === 'number' && timestamp > 0 ? timestamp * 1000 : clock.epochMs(),
      askedAt,
    };
  }

  async function done(handles: readonly RabbitmqHandle[]): Promise<boolean[]> {
    const [first] = handles;
    if (first && handles.every(({ held }) => held === first.held)) {
      const isTaken = await ack(first.held, handles);
      return handles.map(() => isTaken);
    }
    const byChannel = Map.groupBy(handles, ({ held }) => held);
    const answers = new Map(
      await Promise.all(
        Array.from(byChannel, async ([held, some]) => [held, await ack(held, some)] as const),
      ),
    );
    return handles.map(({ held }) => answers.get(held)!);
  }

  async function ack(held: HeldChannel, handles: readonly RabbitmqHandle[]): Promise<boolean> {
    const isTaken = await held.ack(handles);
    consumerOf.get(held)?.settled();
    return isTaken;
  }

  /**
   * Sends a copy of a message that arrived before its due time through the delay levels, then acknowledges
   * the message.
   */
  async function again(topic: string, handle: RabbitmqHandle, delayMs: number): Promise<void> {
    const { content, properties } = handle.message;
    const copy = {
      ...topology.ladder.route(topic, Math.min(delayMs, delayMaxMs)),
      content,
      properties: {
        ...properties,
        headers: encodeHeaders(decodeHeaders(properties)),
        persistent: true,
        mandatory: true,
      },
    };
    await session.persist(async () => {
      if (handle.held.isOpen) await publish(topic, true, [copy as Publication]);
    });
    await done([handle]);
  }

  const topicOf = new WeakMap<HeldChannel, string>();

  return {
    name: 'rabbitmq',
    limits,
    features: {
      arrivalOrder: true,
      anyDelay: missing(
        'delays are rounded up to 100 ms, and retries are not leased in the order in which they are due',
      ),
      durable: true,
    },
    tells: { key: false, time: false },
    holdMs: undefined,

    async ensure(topic, { ordering = 'none' }) {
      await topology.ensure(topic, ordering);
      return { ordering, keepSettledMs: 0 };
    },
    has: (topic) => topology.has(topic),
    topics: () => topology.topics(),

    async send(topic, queue, messages) {
      const isDelayed = queue === 'retry' && messages.some(({ delayMs }) => delayMs > 0);
      await publish(
        topic,
        isDelayed,
        messages.map((message) => publication(topic, queue, message)),
      );
      return undefined;
    },

    open(topic, queue, listener) {
      const consumer: QueueConsumer = new QueueConsumer({
        ...{ session, clock, prefetchMax, queue: names.queue(topic, queue) },
        isOrdered: async () => queue === 'hot' && (await topology.orderingOf(topic)) === 'key',
        restore: () => topology.restore(topic),
        arrived(handles) {
          let latest: HeldChannel | undefined;
          for (const { held } of handles) {
            if (held === latest) continue;
            latest = held;
            consumerOf.set(held, consumer);
            topicOf.set(held, topic);
          }
          const now = clock.now();
          listener.arrived(handles.map((handle) => arrivalOf(topic, handle, now)));
        },
        lost: (handles) => listener.lost(handles),
      });
      const ofTopic = consumers.get(topic) ?? new Map<QueueName, QueueConsumer>();
      consumers.set(topic, ofTopic.set(queue, consumer));
      return consumer;
    },

    done,

    async release(handles) {
      const byConsumer = Map.groupBy(handles, ({ held }) => consumerOf.get(held));
      await Promise.all(Array.from(byConsumer, ([consumer, some]) => consumer?.release(some)));
    },

    later(handle, delayMs) {
      // If this fails, the message stays unacknowledged. The server delivers it again when the channel
      // closes.
      void again(topicOf.get(handle.held)!, handle, delayMs).catch(() => {});
    },

    async counts(topic) {
      const [waiting, delayed] = await Promise.all([
        topology.waiting(topic, 'hot'),
        topology.waiting(topic, 'retry'),
      ]);
      const delivered = Array.from(consumers.get(topic)?.values() ?? [], ({ unsettled }) => unsettled);
      return { waiting, delayed, delivered: delivered.reduce((sum, each) => sum + each, 0) };
    },

    async close() {
      await Promise.all(
        Array.from(consumers.values(), (each) =>
          Promise.all(Array.from(each.values(), (one) => one.close())),
        ),
      );
      await Promise.all([session.close(), sending.close()]);
    },
  };
}

function bytesOf(payload: Payload): Buffer {
  if (typeof payload === 'string') return Buffer.from(payload);
  return Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
}

/**
 * Makes ids for messages of other programs that have no id. AMQP gives messages no ids. So when such a
 * message is delivered again, it gets another id.
 */
function strangerIds(): (topic: string) => string {
  const process = randomUUID();
  let last = 0;
  return (topic) => `${topic}/${process}/${++last}`;
}
