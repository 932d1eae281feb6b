import { type KafkaOptions, openKafka } from '@holdfast/kafka';
import { Consumer, type Message } from '@platformatic/kafka';
import { Kafka, logLevel } from 'kafkajs';
import type { BrokerBench } from './broker-bench.ts';
import { type Drain, handleAll, until } from './drain.ts';
import { publishAll } from './ours.ts';

const partitions = 3;
const commitEvery = 1000;

export const kafkaBench: BrokerBench = {
  service: 'kafka',
  events: 100_000,
  open: (url, store) => openKafka({ ...optionsFor(url), ...(store && { store }) }),
  bare,
  peers: { kafkajs },
  retryingPeers: { kafkajs: (url, topic) => kafkajs(url, topic, 100) },
};

function optionsFor(url: string): KafkaOptions {
  return { url, partitions };
}

/** Fills a topic as we write it. */
async function filled(
  url: string,
  topic: string,
  more: string[] = [],
): Promise<Pick<Drain, 'fill' | 'close'>> {
  const { broker, close } = openKafka(optionsFor(url));
  for (const each of [topic, ...more]) await broker.declare(each);
  return { fill: (count) => publishAll(broker, topic, count), close };
}

/** The stream of the same client; offsets are committed after each batch. */
async function bare(url: string, topic: string): Promise<Drain> {
  const options = { groupId: `${topic}-bare`, clientId: 'bench', bootstrapBrokers: [new URL(url).host] };
  const { fill, close } = await filled(url, topic);
  let consumer: Consumer;
  return {
    fill,
    async drain(count, handle) {
      consumer = new Consumer(options);
      const from = { mode: 'committed', fallbackMode: 'earliest' } as const;
      const stream = await consumer.consume({ topics: [topic], autocommit: false, ...from });
      let batch: Message<Buffer, Buffer, Buffer, Buffer>[] = [];
      let done = 0;
      for await (const message of stream) {
        batch.push(message);
        if (batch.length < commitEvery && done + batch.length < count) continue;
        await handleAll(batch, handle);
        const latest = new Map(batch.map(({ partition, offset }) => [partition, offset + 1n]));
        await consumer.commit({
          offsets: Array.from(latest, ([partition, offset]) => ({
            topic,
            partition,
            offset,
            leaderEpoch: 0,
          })),
        });
        done += batch.length;
        batch = [];
        if (done >= count) break;
      }
    },
    rest: () => consumer.close(true),
    close,
  };
}

/** One event in `failsOneIn` is published to a retry topic, as one does without a library for retries. */
async function kafkajs(url: string, topic: string, failsOneIn = Infinity): Promise<Drain> {
  const retries = `${topic}.again`;
  const { fill, close } = await filled(url, topic, [retries]);
  const client = new Kafka({ clientId: 'bench', brokers: [new URL(url).host], logLevel: logLevel.NOTHING });
  let consumer: ReturnType<typeof client.consumer>;
  const producer = client.producer();
  await producer.connect();
  return {
    fill,
    async drain(count, handle) {
      let done = 0;
      consumer = client.consumer({ groupId: `${topic}-js` });
      await consumer.connect();
      await consumer.subscribe({ topic, fromBeginning: true });
      await consumer.run({
        partitionsConsumedConcurrently: partitions,
        autoCommitThreshold: commitEvery,
        eachMessage: async ({ message: { key, value, headers } }) => {
          await handle();
          done += 1;
          if (done % failsOneIn === 0)
            await producer.send({
              topic: retries,
              messages: [{ key, value, ...(headers && { headers }) }],
            });
        },
      });
      await until(() => done >= count);
    },
    // Commits what it has done.
    rest: () => consumer.disconnect(),
    async close() {
      await producer.disconnect();
      await close();
    },
  };
}
