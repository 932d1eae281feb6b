import { type Consumer, type ConsumerOptions, consumer } from '@holdfast/events';
import type { Policy } from 'holdfast';

/** While the breaker of the payment is open, no event is leased but for probes, and probes cost no attempt. */
export function chargeOrders(
  payment: Policy,
  charge: (order: unknown) => Promise<void>,
  options: Pick<ConsumerOptions, 'engine' | 'clock' | 'random'>,
): Consumer {
  return consumer({
    ...options,
    topic: 'orders',
    dependsOn: [payment.name!],
    handler: ({ payload }) => payment.run(() => charge(payload)),
  });
}
