import * as cockatiel from 'cockatiel';
import { Effect, Scope } from 'effect';
import { CircuitBreaker } from 'effect/persistence';
import type { SlidingWindowBreakerOptions } from 'mollitia';
import type Opossum from 'opossum';

// Like ours: opens when half of at least 20 calls fail, over 30 s where a peer can count by time.
const WINDOW_MS = 30_000;
const MINIMUM = 20;
const FAILURE_RATIO = 0.5;

export function cockatielBreaker(openMs: number): cockatiel.CircuitBreakerPolicy {
  return cockatiel.circuitBreaker(cockatiel.handleAll, {
    halfOpenAfter: openMs,
    breaker: new cockatiel.SamplingBreaker({
      threshold: FAILURE_RATIO,
      duration: WINDOW_MS,
      minimumRps: MINIMUM / (WINDOW_MS / 1000),
    }),
  });
}

/** Less protection, and cheaper: it counts failures in a row and reads no clock. */
export function cockatielConsecutive(openMs: number): cockatiel.CircuitBreakerPolicy {
  return cockatiel.circuitBreaker(cockatiel.handleAll, {
    halfOpenAfter: openMs,
    breaker: new cockatiel.ConsecutiveBreaker(5),
  });
}

/** Without snapshots and percentiles, which are not read here. */
export function opossumOptions(openMs: number): Opossum.Options {
  return {
    timeout: false,
    resetTimeout: openMs,
    errorThresholdPercentage: FAILURE_RATIO * 100,
    volumeThreshold: MINIMUM,
    rollingCountTimeout: WINDOW_MS,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
  };
}

/** For the breaker that counts calls: the one that counts by time copies a thousand records at each call. */
export function mollitiaOptions(openMs: number): SlidingWindowBreakerOptions {
  return {
    slidingWindowSize: MINIMUM,
    minimumNumberOfCalls: MINIMUM,
    failureRateThreshold: FAILURE_RATIO * 100,
    slowCallDurationThreshold: Number.POSITIVE_INFINITY,
    openStateDelay: openMs,
  };
}

/** It counts calls and not time. Made once: it lives in a scope and keeps its state in a store. */
export function effectBreaker(openMs: number): CircuitBreaker.CircuitBreaker {
  const made = CircuitBreaker.make({
    tripPolicy: CircuitBreaker.rate({ threshold: FAILURE_RATIO, size: MINIMUM }),
    openDuration: openMs,
  });
  return Effect.runSync(
    made.pipe(Scope.provide(Scope.makeUnsafe()), Effect.provide(CircuitBreaker.layerStoreMemory())),
  );
}
