import { type Consumer, commit, consumer } from '@holdfast/events';
import type { HoldfastFetch } from '@holdfast/http';
import type { PostgresEngine, PostgresTransaction } from '@holdfast/postgres';
import { type PlacedOrder, topic } from './orders-api.ts';

/** Charges each order once, under the key of its event. While the breaker of `payment` is open it takes no events. */
export function chargeOrders(engine: PostgresEngine, pay: HoldfastFetch, paymentUrl: string): Consumer {
  return consumer<PlacedOrder, PostgresTransaction>({
    engine,
    topic,
    name: 'charge-orders@1',
    dependsOn: ['payment'],
    async handler({ payload, idempotencyKey }) {
      const response = await pay(`${paymentUrl}/charges`, {
        method: 'POST',
        headers: { 'idempotency-key': idempotencyKey },
        body: JSON.stringify(payload),
      });
      if (!response.ok)
        throw Object.assign(new Error(`payment answered ${response.status}`), { status: response.status });
      await response.body?.cancel();
      return commit((tx) => tx.query(`UPDATE orders SET status = 'charged' WHERE id = $1`, [payload.id]));
    },
  });
}
