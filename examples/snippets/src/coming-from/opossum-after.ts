import { policy } from 'holdfast';

export function guarded(rate: (currency: string) => Promise<number>): (currency: string) => Promise<number> {
  return policy({
    name: 'rates',
    attempts: 1,
    attemptTimeout: '3s',
    breaker: { failureRatio: 0.5, minimum: 4, openFor: ['30s', '30s'] },
    fallback: { to: 1 },
  }).wrap(rate);
}
