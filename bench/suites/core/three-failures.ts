import asyncRetry from 'async-retry';
import * as cockatiel from 'cockatiel';
import { Effect } from 'effect';
import { backOff } from 'exponential-backoff';
import { any, definePolicy, retry } from 'holdfast';
import * as mollitia from 'mollitia';
import pRetry from 'p-retry';
import type { Case } from '../../harness.ts';
import { flaky } from './operation.ts';

const ATTEMPTS = 4;
const RETRIES = ATTEMPTS - 1;

const eager = definePolicy([retry, any])({
  patience: 'unlimited',
  backoff: { base: 0, jitter: 'none' },
  retryOn: 'any',
});
const cockatielEager = cockatiel.retry(cockatiel.handleAll, {
  maxAttempts: RETRIES,
  backoff: new cockatiel.ConstantBackoff(0),
});
const pRetryEager = { retries: RETRIES, minTimeout: 0 };
const asyncRetryEager = { retries: RETRIES, minTimeout: 0, maxTimeout: 0, randomize: false };
const backOffEager = { numOfAttempts: ATTEMPTS, startingDelay: 0 };
const mollitiaEager = new mollitia.Circuit({
  func: flaky(),
  options: { modules: [new mollitia.Retry({ attempts: RETRIES, interval: 0 })] },
});
const effectEager = Effect.retry(Effect.tryPromise({ try: flaky(), catch: (error) => error }), {
  times: RETRIES,
});

const forTheLoop = flaky();
const forUs = flaky();
const forCockatiel = flaky();
const forPRetry = flaky();
const forAsyncRetry = flaky();
const forBackOff = flaky();

export const threeFailures: Case = {
  case: 'three failures, no delay',
  unit: 'ns',
  better: 'lower',
  bars: [{ toFloorMax: 1.25 }],
  async floor(times) {
    for (let i = 0; i < times; i++) await byHand();
  },
  async ours(times) {
    for (let i = 0; i < times; i++) await eager.run(forUs);
  },
  peers: {
    async cockatiel(times) {
      for (let i = 0; i < times; i++) await cockatielEager.execute(forCockatiel);
    },
    async 'p-retry'(times) {
      for (let i = 0; i < times; i++) await pRetry(forPRetry, pRetryEager);
    },
    async 'async-retry'(times) {
      for (let i = 0; i < times; i++) await asyncRetry(forAsyncRetry, asyncRetryEager);
    },
    async 'exponential-backoff'(times) {
      for (let i = 0; i < times; i++) await backOff(forBackOff, backOffEager);
    },
    async mollitia(times) {
      for (let i = 0; i < times; i++) await mollitiaEager.execute();
    },
    async Effect(times) {
      for (let i = 0; i < times; i++) await Effect.runPromise(effectEager);
    },
  },
};

/** The loop that everyone has written once. */
async function byHand(): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await forTheLoop();
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
    }
  }
}
