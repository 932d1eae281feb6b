import { mkdirSync } from 'node:fs';
import path from 'node:path';
import type { Engine } from '@holdfast/contracts';

export interface OpenedStore {
  /** The store, or a broker with the store beside it. */
  readonly engine: Engine;
  /** The store as a person names it. */
  readonly name: string;
  close(): Promise<void>;
}

export const brokers = ['kafka', 'rabbitmq', 'sqs', 'nats', 'redis'] as const;
export type BrokerName = (typeof brokers)[number];

/** Opens a SQLite file or a PostgreSQL database, and a broker beside it if one is named. */
export async function openStore(
  where: string,
  broker: BrokerName | undefined,
  addresses: string | undefined,
): Promise<OpenedStore> {
  const store = await openMain(where);
  const name = where.includes('://') ? new URL(where).host + new URL(where).pathname : path.basename(where);
  if (broker === undefined) return { engine: store, name, close: () => store.close() };
  const engine = await openBroker(broker, addresses ?? '', store);
  return {
    engine,
    name: `${name}, events on ${broker}`,
    async close() {
      await engine.close();
      await store.close();
    },
  };
}

async function openMain(where: string): Promise<Engine> {
  if (/^postgres(ql)?:\/\//.test(where)) {
    const { openPostgres } = await import('@holdfast/postgres');
    return (await openPostgres({ url: where })) as unknown as Engine;
  }
  const { openSqlite } = await import('@holdfast/sqlite');
  mkdirSync(path.dirname(path.resolve(where)), { recursive: true });
  return (await openSqlite({ file: where })) as unknown as Engine;
}

async function openBroker(broker: BrokerName, addresses: string, store: Engine): Promise<Engine> {
  if (addresses === '')
    throw new RangeError(`--engine ${broker} needs --brokers, the address of the server.`);
  switch (broker) {
    case 'kafka': {
      const { openKafka } = await import('@holdfast/kafka');
      const where = addresses.includes('://') ? { url: addresses } : { brokers: addresses.split(',') };
      return openKafka({ ...where, store });
    }
    case 'nats': {
      const { openNats } = await import('@holdfast/nats');
      return openNats({ url: addresses.split(','), store });
    }
    case 'rabbitmq': {
      const { openRabbitmq } = await import('@holdfast/rabbitmq');
      return openRabbitmq({ url: addresses, store });
    }
    case 'sqs': {
      const { openSqs } = await import('@holdfast/sqs');
      return openSqs({ endpoint: addresses, region: 'local', store });
    }
    case 'redis': {
      const { openRedis } = await import('@holdfast/redis');
      return openRedis({ url: addresses, store }) as unknown as Engine;
    }
  }
}
