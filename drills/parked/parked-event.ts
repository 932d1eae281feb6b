import { errorNote, type NewlyParked } from '@holdfast/contracts';
import { systemClock } from 'holdfast';

/** The part that is of the type `late`. */
export const REPLAYED = 0.1;
export const GROUPS = 50;

/** An order that was parked, of one of fifty groups. */
export function parkedEvent(id: string, number: number): NewlyParked {
  const error = errorNote({
    name: `Error${number % GROUPS}`,
    message: `no room on shelf ${number % GROUPS}`,
  });
  return {
    id,
    topic: 'orders',
    payload: JSON.stringify({ order: number, note: 'x'.repeat(100) }),
    type: number % Math.round(1 / REPLAYED) === 0 ? 'late' : 'placed',
    key: `customer-${number % 10_000}`,
    tenant: undefined,
    headers: {},
    correlationId: id,
    idempotencyKey: id,
    originTopic: 'orders',
    firstSeenAt: systemClock.epochMs(),
    expiresAt: undefined,
    replay: undefined,
    diagnosis: {
      reason: error.type,
      message: error.message,
      stop: 'not_retryable',
      finalAttempt: 1,
      consumer: 'drill',
      error,
      story: [],
    },
  };
}
