import type { Engine } from '@holdfast/contracts';
import { type Consumer, consumer } from '@holdfast/events';
import type { HoldfastFetch } from '@holdfast/http';
import { permanent } from 'holdfast';

export const topic = 'orders';

export interface PlacedOrder {
  readonly order: string;
  readonly item: string;
  readonly total: number;
}

/** Payment has said that a charge can never be made like this. */
class PaymentRejected extends Error {
  override readonly name = 'PaymentRejected';
}

/**
 * Charges each order. While payment's breaker is open it takes no events, so that no attempt is used up; a charge that was
 * rejected is parked for a person.
 */
export function chargeOrders(engine: Engine, pay: HoldfastFetch, url: string): Consumer {
  return consumer<PlacedOrder>({
    engine,
    topic,
    name: 'charge-orders',
    ordering: 'key',
    dependsOn: ['payment'],
    concurrency: 8,
    redact: ['card'],
    async handler({ payload }) {
      const response = await pay(`${url}/payment/charge`, { method: 'POST', body: JSON.stringify(payload) });
      if (response.status === 422) {
        const { error } = (await response.json()) as { error: string };
        throw permanent(new PaymentRejected(`422 ${error}`));
      }
      if (!response.ok)
        throw Object.assign(new Error(`payment answered ${response.status}`), { status: response.status });
    },
  });
}
