import type { Engine } from '@holdfast/contracts';
import { openKafka } from '@holdfast/kafka';
import { openNats } from '@holdfast/nats';
import { openRabbitmq } from '@holdfast/rabbitmq';
import { openRedis } from '@holdfast/redis';
import { openSqlite } from '@holdfast/sqlite';
import { openSqs } from '@holdfast/sqs';

export const brokerNames = ['kafka', 'rabbitmq', 'sqs', 'nats', 'redis'] as const;
export type BrokerName = (typeof brokerNames)[number];

/** Called between two writes of the engine: when the store has answered, and the broker is not told yet. */
export interface BetweenWrites {
  /** Marks or a retry of a settlement are in the store. */
  onWritten(): void;
  /** An event that must wait for another one of its key has moved into the store. */
  onMoved(): void;
}

/** Each server notices the death of a process after two or three seconds. */
const open: Record<BrokerName, (url: string, store: Engine) => Engine> = {
  kafka: (url, store) =>
    openKafka({ url, store, partitions: 6, sessionTimeout: '2s', rebalanceTimeout: '5s' }),
  rabbitmq: (url, store) => openRabbitmq({ url, store, heartbeat: '2s' }),
  sqs: (endpoint, store) =>
    openSqs({
      ...{ endpoint, store, region: 'elasticmq', visibility: '3s', waitTime: '1s' },
      credentials: { accessKeyId: 'drill', secretAccessKey: 'drill' },
    }),
  nats: (url, store) => openNats({ url, store, ackWait: '3s', partitions: 8 }),
  redis: (url, store) => openRedis({ url, store }),
};

/** Opens a broker with a SQLite file as the store beside it. */
export async function openBroker(
  name: BrokerName,
  url: string,
  file: string,
  between: BetweenWrites,
): Promise<Required<Engine>> {
  const store = (await openSqlite({ file })) as Required<Engine>;
  const engine = open[name](url, watched(store, between));
  return {
    ...(engine as Required<Engine>),
    async close() {
      await engine.close();
      await store.close();
    },
  };
}

function watched(store: Required<Engine>, { onWritten, onMoved }: BetweenWrites): Engine {
  const { broker, ledger } = store;
  const mark = ledger.mark.bind(ledger);
  return {
    ...store,
    // The ledger is the instance of a class: a copy would not have its methods.
    ledger: Object.assign(ledger, {
      mark: (marks: Parameters<typeof mark>[0]) => mark(marks).finally(onWritten),
    }),
    broker: {
      ...broker,
      publish: (topic, events) => broker.publish(topic, events).finally(onWritten),
      async publishBehind(topic, events) {
        const moved = await broker.publishBehind!(topic, events);
        if (moved.includes(true)) onMoved();
        return moved;
      },
    },
  };
}
