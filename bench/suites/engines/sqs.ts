import {
  DeleteMessageBatchCommand,
  GetQueueUrlCommand,
  ReceiveMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { openSqs } from '@holdfast/sqs';
import { Consumer } from 'sqs-consumer';
import type { BrokerBench } from './broker-bench.ts';
import { type Drain, handleAll, until } from './drain.ts';
import { publishAll } from './ours.ts';

const region = 'elasticmq';
const credentials = { accessKeyId: 'bench', secretAccessKey: 'bench' };
/** Requests for messages that are open at a time, on every side. */
const receivers = 8;

export const sqsBench: BrokerBench = {
  service: 'elasticmq',
  // On a disk it takes about 100 messages a second, so it keeps them in memory.
  settings: { 'messages-storage.enabled': 'false', 'queues-storage.enabled': 'false' },
  events: 2000,
  open: (endpoint, store) =>
    openSqs({
      ...{ endpoint, region, credentials, receivesMax: receivers },
      // A request that still waits when an engine is closed may be given messages, which are then hidden for `visibility`.
      waitTime: '1s',
      ...(store && { store }),
    }),
  bare,
  peers: { 'sqs-consumer': sqsConsumer },
};

async function filled(endpoint: string, topic: string) {
  const { broker, close } = openSqs({ endpoint, region, credentials });
  await broker.declare(topic);
  const client = new SQSClient({
    endpoint,
    region,
    credentials,
    requestHandler: { httpAgent: { maxSockets: 50 } },
  });
  const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: topic }));
  const fill: Drain['fill'] = (count) => publishAll(broker, topic, count);
  return { fill, close, client, QueueUrl: QueueUrl! };
}

/** Eight loops of the same client: ten received, handled, and deleted together. */
async function bare(endpoint: string, topic: string): Promise<Drain> {
  const { fill, close, client, QueueUrl } = await filled(endpoint, topic);
  return {
    fill,
    async drain(count, handle) {
      let done = 0;
      const loop = async () => {
        while (done < count) {
          const receive = { QueueUrl, MaxNumberOfMessages: 10, MessageAttributeNames: ['All'] };
          const { Messages = [] } = await client.send(new ReceiveMessageCommand(receive));
          if (Messages.length === 0) continue;
          await handleAll(Messages, handle);
          const Entries = Messages.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }));
          await client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }));
          done += Messages.length;
        }
      };
      await Promise.all(Array.from({ length: receivers }, loop));
    },
    async close() {
      client.destroy();
      await close();
    },
  };
}

async function sqsConsumer(endpoint: string, topic: string): Promise<Drain> {
  const { fill, close, client, QueueUrl } = await filled(endpoint, topic);
  let consumers: Consumer[] = [];
  return {
    fill,
    async drain(count, handle) {
      let done = 0;
      consumers = Array.from({ length: receivers }, () => {
        const consumer = Consumer.create({
          ...{ queueUrl: QueueUrl, sqs: client, batchSize: 10, waitTimeSeconds: 1 },
          messageAttributeNames: ['All'],
          handleMessage: async (message) => {
            await handle();
            return message;
          },
        });
        // Emitted when a message is deleted.
        consumer.on('message_processed', () => {
          done += 1;
        });
        // The requests that wait are aborted at the end of a round.
        consumer.on('error', () => {});
        consumer.start();
        return consumer;
      });
      await until(() => done >= count);
    },
    async rest() {
      const stopped = consumers.map(
        (each) => new Promise((resolve) => each.once('stopped', () => resolve(undefined))),
      );
      for (const each of consumers) each.stop({ abort: true });
      await Promise.all(stopped);
    },
    async close() {
      client.destroy();
      await close();
    },
  };
}
