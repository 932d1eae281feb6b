import { type Consumer, type ConsumerOptions, consumer } from '@holdfast/events';

/** Six attempts take about eight seconds. In a longer outage every event is parked, one after the other. */
export function chargeOrders(
  charge: (order: unknown) => Promise<void>,
  options: Pick<ConsumerOptions, 'engine' | 'clock' | 'random'>,
): Consumer {
  return consumer({ ...options, topic: 'orders', handler: ({ payload }) => charge(payload) });
}
