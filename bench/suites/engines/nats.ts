import { openNats } from '@holdfast/nats';
import { type JsMsg, jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import type { BrokerBench } from './broker-bench.ts';
import { concurrency, type Drain, handleAll } from './drain.ts';
import { publishAll } from './ours.ts';

export const natsBench: BrokerBench = {
  service: 'nats',
  events: 20_000,
  open: (url, store) => openNats({ url, ...(store && { store }) }),
  // We wait for the answer of the server, so the floor does, too.
  bare: (url, topic) =>
    consuming(url, topic, async (messages) => {
      await Promise.all(messages.map((message) => message.ackAck()));
    }),
  peers: {
    'consume + ack, unanswered': (url, topic) =>
      consuming(url, topic, async (messages) => {
        for (const message of messages) message.ack();
      }),
  },
};

/** The iterator of the same client. */
async function consuming(
  url: string,
  topic: string,
  acknowledge: (messages: readonly JsMsg[]) => Promise<void>,
): Promise<Drain> {
  const { broker, close } = openNats({ url });
  await broker.declare(topic);
  const connection = await connect({ servers: url });
  const consumer = await jetstream(connection).consumers.get(`holdfast_${topic}`, 'hot_0');
  return {
    fill: (count) => publishAll(broker, topic, count),
    async drain(count, handle) {
      const messages = await consumer.consume({ max_messages: 1000 });
      let batch: JsMsg[] = [];
      let done = 0;
      for await (const message of messages) {
        batch.push(message);
        if (batch.length < concurrency && done + batch.length < count) continue;
        await handleAll(batch, handle);
        await acknowledge(batch);
        done += batch.length;
        batch = [];
        if (done >= count) break;
      }
      // What was sent is with the server.
      await connection.flush();
      await messages.close();
    },
    async close() {
      await connection.close();
      await close();
    },
  };
}
