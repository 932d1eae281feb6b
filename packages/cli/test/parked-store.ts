import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Broker, Engine } from '@holdfast/contracts';
import { type Consumer, consumer, subscribeEvents } from '@holdfast/events';
import { openSqlite, type SqliteEngine } from '@holdfast/sqlite';
import { onTestFinished } from 'vitest';

export interface ParkedStore extends ParkedOrders {
  readonly file: string;
  readonly engine: SqliteEngine;
}

interface ParkedOrders {
  readonly orders: Consumer;
  /** From now on handlers succeed. */
  fix(): void;
}

/** A SQLite file in which so many orders are parked, and a consumer that runs beside the command. */
export async function parkedStore(count: number): Promise<ParkedStore> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-cli-'));
  const file = path.join(folder, 'store.db');
  const engine = await openSqlite({ file });
  const parked = await parkOrders(engine, count);
  onTestFinished(async () => {
    await parked.orders.stop();
    await engine.close();
    await rm(folder, { recursive: true });
  });
  return { file, engine, ...parked };
}

/** Publishes orders, and starts a consumer that parks them. */
export async function parkOrders<Tx>(
  engine: Engine<Tx> & { readonly broker: Broker<Tx> },
  count: number,
): Promise<ParkedOrders> {
  let isBroken = true;
  const orders = consumer<unknown, Tx>({
    engine,
    topic: 'orders',
    handler: () => {
      if (isBroken) throw new TypeError('total is not a number');
    },
  });
  onTestFinished(subscribeEvents(() => {})); // without a listener, the consumer warns when it parks
  await orders.start();
  const events = Array.from({ length: count }, (_, index) => ({
    id: `order-${index}`,
    payload: `{"index":${index}}`,
  }));
  await engine.broker.publish('orders', events);
  while (orders.state().counters.parked < count)
    await engine.broker.counts('orders').then(() => immediately());
  return {
    orders,
    fix: () => {
      isBroken = false;
    },
  };
}

function immediately(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
