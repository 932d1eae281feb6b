import type { DatabaseSync } from 'node:sqlite';
import { outbox } from '@holdfast/events';
import type { SqliteEngine } from '@holdfast/sqlite';

export const topic = 'mails';

export interface Mail {
  readonly order: string;
}

/** Creates the table and the topic, if they are not there. Both are in one file. */
export async function createTables(engine: SqliteEngine): Promise<void> {
  await engine.transaction((database) =>
    database.exec('CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, item TEXT NOT NULL)'),
  );
  await engine.broker.declare(topic);
}

/**
 * Stores an order, and the event that sends its mail, in one transaction: both are there, or neither is. `beforeCommit`
 * stands for whatever goes wrong after both were written.
 */
export async function placeOrder(
  engine: SqliteEngine,
  order: { readonly id: string; readonly item: string },
  beforeCommit: () => void = () => {},
): Promise<void> {
  const mails = outbox<Mail, DatabaseSync>({ engine, topic });
  await engine.transaction((database) => {
    database.prepare('INSERT INTO orders VALUES (?, ?)').run(order.id, order.item);
    mails.publish(database, { type: 'order placed', key: order.id, payload: { order: order.id } });
    beforeCommit();
  });
}
