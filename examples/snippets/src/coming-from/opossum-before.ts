import CircuitBreaker from 'opossum';

export function guarded(rate: (currency: string) => Promise<number>): (currency: string) => Promise<number> {
  const breaker = new CircuitBreaker(rate, {
    timeout: 3000,
    errorThresholdPercentage: 50,
    volumeThreshold: 4,
    resetTimeout: 30_000,
  });
  breaker.fallback(() => 1);
  return (currency) => breaker.fire(currency);
}
