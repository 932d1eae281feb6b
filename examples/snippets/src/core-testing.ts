import { policy } from 'holdfast';
import { after, scripted, seededRandom, virtualClock } from 'holdfast/testing';

/** Two failures and an answer, in no time at all. */
export async function threeAttempts(): Promise<[value: unknown, attempts: readonly number[]]> {
  const clock = virtualClock();
  const orders = policy({ backoff: { base: '1s' } }, { clock, random: seededRandom('orders', 1) });
  const down = Object.assign(new Error('down'), { code: 'ECONNRESET' });
  const place = scripted(clock, down, after('40ms', down), 'placed');
  const running = orders.run(place);
  await clock.advance('10s');
  return [await running, place.attempts];
}
