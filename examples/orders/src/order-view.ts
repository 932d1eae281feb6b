import type { DatabaseSync } from 'node:sqlite';
import { type Consumer, commit, consumer, park } from '@holdfast/events';
import type { HoldfastFetch } from '@holdfast/http';
import type { SqliteEngine } from '@holdfast/sqlite';
import { type OrderEvent, orderSchema } from './order.ts';

export const topic = 'orders';

/** Makes the table that the events are projected into: in the same file, so that a row and its mark are one transaction. */
export function createView(database: DatabaseSync): void {
  database.exec(
    'CREATE TABLE IF NOT EXISTS order_view (id TEXT PRIMARY KEY, status TEXT, receipt TEXT, changes INTEGER)',
  );
}

/** Projects order events into the view; an order is paid for before it is placed. */
export function projectOrders(engine: SqliteEngine, pay: HoldfastFetch, paymentUrl: string): Consumer {
  return consumer<OrderEvent, DatabaseSync>({
    engine,
    topic,
    name: 'order-view@1',
    ordering: 'key',
    concurrency: 20,
    schema: orderSchema,
    // While the breaker of this policy is open nothing is claimed, so that no attempt is burnt.
    dependsOn: ['payment'],
    // What was not paid for is not shipped: the rest of the order waits until its payment is replayed.
    parkedKeys: 'block',
    redact: ['card'],
    handler: async ({ type, payload, idempotencyKey }) => {
      let receipt: string | undefined;
      if (type === 'placed') {
        const response = await pay(`${paymentUrl}/charges`, {
          method: 'POST',
          headers: { 'idempotency-key': idempotencyKey },
          body: JSON.stringify(payload),
        });
        if (response.status === 402) return park('card declined');
        if (!response.ok) throw Object.assign(new Error('payment failed'), { status: response.status });
        ({ receipt } = (await response.json()) as { receipt: string });
      }
      return commit((database) => {
        database
          .prepare(
            `INSERT INTO order_view (id, status, receipt, changes) VALUES (?, ?, ?, 1)
             ON CONFLICT (id) DO UPDATE SET status = excluded.status, receipt = coalesce(excluded.receipt, receipt), changes = changes + 1`,
          )
          .run(payload.order, type ?? '', receipt ?? null);
      });
    },
  });
}
