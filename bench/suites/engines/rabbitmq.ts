import { openRabbitmq } from '@holdfast/rabbitmq';
import { type ConsumeMessage, connect } from 'amqplib';
import { Connection, ConsumerStatus } from 'rabbitmq-client';
import type { BrokerBench } from './broker-bench.ts';
import { concurrency, type Drain, until } from './drain.ts';
import { publishAll } from './ours.ts';

const prefetch = 500;
const ackEvery = 100;

export const rabbitmqBench: BrokerBench = {
  service: 'rabbitmq',
  events: 60_000,
  countsServer: true,
  open: (url, store) => openRabbitmq({ url, ...(store && { store }) }),
  bare,
  peers: { 'rabbitmq-client': rabbitmqClient },
};

/** A quorum queue, as we declare it. */
async function filled(url: string, topic: string): Promise<Pick<Drain, 'fill' | 'close'>> {
  const { broker, close } = openRabbitmq({ url });
  await broker.declare(topic);
  return { fill: (count) => publishAll(broker, topic, count), close };
}

/** The same client: one acknowledgement for each hundred. */
async function bare(url: string, topic: string): Promise<Drain> {
  const { fill, close } = await filled(url, topic);
  const connection = await connect(url);
  const channel = await connection.createChannel();
  await channel.prefetch(prefetch);
  return {
    fill,
    async drain(count, handle) {
      let done = 0;
      let unacked = 0;
      const onMessage = async (message: ConsumeMessage | null) => {
        await handle();
        done += 1;
        unacked += 1;
        if (unacked < ackEvery && done < count) return;
        unacked = 0;
        channel.ack(message!, true);
      };
      const { consumerTag } = await channel.consume(topic, (message) => void onMessage(message));
      await until(() => done >= count);
      // Answered after the acknowledgements.
      await channel.cancel(consumerTag);
    },
    async close() {
      await connection.close();
      await close();
    },
  };
}

async function rabbitmqClient(url: string, topic: string): Promise<Drain> {
  const { fill, close } = await filled(url, topic);
  const connection = new Connection(url);
  let consumer: ReturnType<typeof connection.createConsumer>;
  return {
    fill,
    async drain(count, handle) {
      let done = 0;
      consumer = connection.createConsumer(
        { queue: topic, queueOptions: { passive: true }, qos: { prefetchCount: prefetch }, concurrency },
        async () => {
          await handle();
          done += 1;
          return ConsumerStatus.ACK;
        },
      );
      await until(() => done >= count);
    },
    rest: () => consumer.close(),
    async close() {
      await connection.close();
      await close();
    },
  };
}
