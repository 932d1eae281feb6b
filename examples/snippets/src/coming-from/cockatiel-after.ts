import { policy } from 'holdfast';

const stockPolicy = policy({
  name: 'stock',
  retryOn: 'any',
  attempts: 5,
  backoff: { base: '10ms' },
  breaker: { consecutive: 5, openFor: ['10s', '10s'] },
  attemptTimeout: '2s',
});

export function stock(call: (signal: AbortSignal) => Promise<number>): Promise<number> {
  return stockPolicy.run(({ signal }) => call(signal));
}
