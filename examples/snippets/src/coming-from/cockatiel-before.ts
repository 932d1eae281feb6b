import {
  ConsecutiveBreaker,
  circuitBreaker,
  ExponentialBackoff,
  handleAll,
  retry,
  TimeoutStrategy,
  timeout,
  wrap,
} from 'cockatiel';

const policy = wrap(
  retry(handleAll, { maxAttempts: 4, backoff: new ExponentialBackoff({ initialDelay: 10 }) }),
  circuitBreaker(handleAll, { halfOpenAfter: 10_000, breaker: new ConsecutiveBreaker(5) }),
  timeout(2000, TimeoutStrategy.Aggressive),
);

export function stock(call: (signal: AbortSignal) => Promise<number>): Promise<number> {
  return policy.execute(({ signal }) => call(signal));
}
