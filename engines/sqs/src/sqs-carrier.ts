import {
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  type SendMessageBatchRequestEntry,
  type Message as SqsMessage,
} from '@aws-sdk/client-sqs';
import { missing, timeOrderedId } from '@holdfast/contracts';
import type { Carrier, IntakeListener, Message } from '@holdfast/contracts/carrier';
import { batchesOf, performBatches, roundsOf } from './batches.ts';
import { HeldMessages, type SqsHandle } from './held-messages.ts';
import { Liveness } from './liveness.ts';
import { hashOf, QueueNames } from './queue-names.ts';
import { type Queue, Queues } from './queues.ts';
import { Receives } from './receives.ts';
import { awsErrorName, SqsError } from './sqs-errors.ts';
import { decodeMessage, encodeMessage } from './sqs-message.ts';
import type { SqsSettings } from './sqs-options.ts';

/**
 * The longest delay of a new message on SQS. A message with a longer delay arrives early, and `later` returns
 * it to the queue.
 */
const delayMaxSeconds = 900;

interface Received {
  readonly message: SqsMessage;
  readonly queue: Queue;
  readonly askedAt: number;
}

/**
 * Sends and receives events through SQS. A topic has a queue for first attempts and a queue for retries. A
 * topic with key order has a FIFO queue.
 */
export function sqsCarrier(settings: SqsSettings): Carrier<SqsHandle> {
  const { client, clock, limits, visibilitySeconds, waitSeconds, hasStore, onError } = settings;
  const holdMs = visibilitySeconds * 1000;
  const newId = timeOrderedId(clock, settings.random);
  const queues = new Queues({ ...settings, names: new QueueNames(settings.prefix) });
  const held = new HeldMessages(settings);
  const liveness = new Liveness(clock, Math.min(1000, holdMs / 20));
  const open = new Set<Receives<Received>>();

  async function receive(
    queue: Queue,
    count: number,
    wait: number,
    abortSignal: AbortSignal,
  ): Promise<Received[]> {
    const sentAt = clock.now();
    try {
      const { Messages = [] } = await client.send(
        new ReceiveMessageCommand({
          QueueUrl: queue.url,
          MaxNumberOfMessages: count,
          WaitTimeSeconds: wait,
          VisibilityTimeout: visibilitySeconds,
          MessageSystemAttributeNames: ['SentTimestamp', 'MessageGroupId'],
          MessageAttributeNames: ['All'],
          // If the answer is lost, the client repeats the request with this id. The FIFO queue then delivers
          // the same messages.
          ...(queue.isFifo && { ReceiveRequestAttemptId: newId() }),
        }),
        // The request waits on the server for `wait` seconds, so its timeout must be longer than that.
        { abortSignal, requestTimeout: wait * 1000 + settings.timeoutMs },
      );
      const askedAt = Math.max(sentAt, liveness.since);
      return Messages.map((message) => ({ message, queue, askedAt }));
    } catch (error) {
      throw explained(error, queue);
    }
  }

  function explained(error: unknown, queue: Queue): unknown {
    const name = awsErrorName(error);
    if (name === 'QueueDoesNotExist') queues.forget(queue);
    if (name !== 'OverLimit') return error;
    const why = `SQS holds its most messages of the queue ${queue.name} in flight (120,000), and delivers no more`;
    const cure = 'settle leased events, or give a store for retries that wait for longer than 15 minutes';
    return new SqsError('IN_FLIGHT_FULL', `${why}: ${cure}`, error);
  }

  function arrivalOf(listener: IntakeListener<SqsHandle>, { message, queue, askedAt }: Received) {
    return {
      ...decodeMessage(message),
      handle: { queue, receipt: message.ReceiptHandle!, since: askedAt, listener },
      messageId: message.MessageId!,
      at: Number(message.Attributes?.SentTimestamp ?? clock.epochMs()),
      askedAt,
    };
  }

  return {
    name: 'sqs',
    limits,
    features: {
      arrivalOrder: missing('a standard queue of SQS delivers in any order'),
      anyDelay: missing('SQS delays by whole seconds'),
      durable: true,
    },
    tells: { key: false, time: true },
    holdMs,

    ensure: (topic, wanted) => queues.ensure(topic, wanted),
    has: async (topic) => (await queues.find(topic, 'hot')) !== undefined,
    topics: () => queues.topics(),

    async send(topic, name, messages) {
      const queue = await queues.need(topic, name);
      // Encode all messages before the first one is sent. If one is too large, this throws, and none is sent.
      const entries = messages.map((message) => entryOf(message, queue, name === 'retry', newId));
      const rounds = queue.isFifo ? roundsOf(entries, ({ entry }) => entry.MessageGroupId!) : [entries];
      for (const round of rounds) {
        const batches = batchesOf(round, ({ bytes }) => bytes);
        const refusals = await performBatches(batches, clock, (batch) =>
          client
            .send(
              new SendMessageBatchCommand({
                QueueUrl: queue.url,
                Entries: batch.map(({ entry }, index) => ({ ...entry, Id: String(index) })),
              }),
            )
            .catch((error) => Promise.reject(explained(error, queue))),
        );
        for (const { Code, Message } of refusals.values())
          throw new SqsError(
            'REFUSED',
            `SQS refused ${refusals.size} of ${messages.length} messages to ${queue.name}: ${Code} ${Message ?? ''}`,
          );
      }
      return undefined;
    },

    open(topic, name, listener) {
      let queue: Promise<Queue | undefined> | undefined;
      // With a store, a retry queue exists only if the topic was used without a store before. Its retries are
      // still handled.
      const find = () =>
        (queue ??= hasStore && name === 'retry' ? queues.find(topic, name) : queues.need(topic, name));
      const receives = new Receives<Received>({
        ...{ clock, waitSeconds, requestsMax: settings.receivesMax },
        async receive(count, wait, signal) {
          try {
            const found = await find();
            if (found) return await receive(found, count, wait, signal);
          } catch (error) {
            queue = undefined;
            throw error;
          }
          void receives.close();
          return [];
        },
        onMessages: (received) => listener.arrived(received.map((each) => arrivalOf(listener, each))),
        onFailure: onError,
      });
      liveness.start();
      open.add(receives);
      return receives;
    },

    done: (handles) => held.done(handles),
    release: (handles) => held.release(handles),
    keep: (handles) => held.keep(handles),
    later: (handle, delayMs) => held.later(handle, delayMs),

    async counts(topic) {
      const [hot, retry] = await Promise.all([
        queues.need(topic, 'hot').then((queue) => countsOf(queues, queue)),
        queues.find(topic, 'retry').then((queue) => queue && countsOf(queues, queue)),
      ]);
      return {
        waiting: hot.visible + hot.delayed,
        delayed: retry ? retry.visible + retry.delayed + retry.inFlight : 0,
        delivered: hot.inFlight,
      };
    },

    async close() {
      await Promise.all(Array.from(open, (receives) => receives.close()));
      await held.close();
      liveness.stop();
      if (settings.ownsClient) client.destroy();
    },
  };
}

/** Builds the entry of a message, without its `Id`: that is set when the entry is put into a batch. */
function entryOf(
  message: Message,
  queue: Queue,
  isDelayed: boolean,
  newId: () => string,
): { readonly entry: Omit<SendMessageBatchRequestEntry, 'Id'>; readonly bytes: number } {
  const { body, attributes, bytes } = encodeMessage(message);
  const delay = Math.min(delayMaxSeconds, Math.ceil(message.delayMs / 1000));
  const entry = {
    MessageBody: body,
    MessageAttributes: attributes,
    // A FIFO queue cannot delay single messages. A message that arrives before its due time moves into the
    // store.
    ...(isDelayed && delay > 0 && !queue.isFifo && { DelaySeconds: delay }),
    ...(queue.isFifo && {
      // An event without a key gets a group of its own, so it waits for no other event.
      MessageGroupId: hashOf(message.key === undefined ? `id ${message.dedupId}` : `key ${message.key}`),
      MessageDeduplicationId: deduplicationId(message, newId),
    }),
  };
  return { entry, bytes };
}

/**
 * For five minutes, SQS drops a second message with the same deduplication id. A published event gets a new
 * id each time, because it may be the replay of a parked event. Copies, such as retries, keep their own
 * `dedupId`.
 */
function deduplicationId({ dedupId, headers }: Message, newId: () => string): string {
  return hashOf(dedupId === headers['event-id'] ? `${dedupId} ${newId()}` : dedupId);
}

async function countsOf(
  queues: Queues,
  queue: Queue,
): Promise<{ visible: number; delayed: number; inFlight: number }> {
  const counts = await queues.attributes(queue, [
    'ApproximateNumberOfMessages',
    'ApproximateNumberOfMessagesDelayed',
    'ApproximateNumberOfMessagesNotVisible',
  ]);
  return {
    visible: Number(counts.ApproximateNumberOfMessages ?? 0),
    delayed: Number(counts.ApproximateNumberOfMessagesDelayed ?? 0),
    inFlight: Number(counts.ApproximateNumberOfMessagesNotVisible ?? 0),
  };
}
