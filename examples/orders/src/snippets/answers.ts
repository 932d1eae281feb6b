import {
  discard,
  type HandledEvent,
  type HandlerResult,
  park,
  reroute,
  retry,
  snooze,
} from '@holdfast/events';

interface Order {
  readonly total: number;
  readonly stock: 'there' | 'counted' | 'unknown';
}

/** What it throws is classified and retried by the policy; these are the other ways to end. */
export async function handleOrder({
  payload,
  attempt,
}: HandledEvent<Order>): Promise<HandlerResult | undefined> {
  if (payload.total === 0) return discard('nothing was bought');
  if (payload.total < 0) return park('a negative total');
  if (payload.total > 10_000) return reroute('large-orders');
  if (payload.stock === 'counted') return snooze('30s'); // costs no attempt
  if (payload.stock === 'unknown' && attempt < 3) return retry(new Error('nobody knows the stock'));
  return undefined; // done
}
