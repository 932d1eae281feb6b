import asyncRetry from 'async-retry';
import * as cockatiel from 'cockatiel';
import { Effect, Schedule } from 'effect';
import { backOff } from 'exponential-backoff';
import { definePolicy, retry } from 'holdfast';
import * as mollitia from 'mollitia';
import pRetry from 'p-retry';
import type { Case } from '../../harness.ts';
import { answer, bare } from './operation.ts';

// Everyone makes at most four attempts with exponential backoff, and gets its options made once where it allows that.
const ATTEMPTS = 4;
const RETRIES = ATTEMPTS - 1;
const PATIENCE_MS = 10_000;

const unlimited = definePolicy([retry])({ patience: 'unlimited' });
const patient = definePolicy([retry])({ patience: '10s' });

const cockatielRetry = cockatiel.retry(cockatiel.handleAll, {
  maxAttempts: RETRIES,
  backoff: new cockatiel.ExponentialBackoff(),
});
// Cooperative is the cheaper strategy, and what a total limit around retries needs.
const cockatielPatient = cockatiel.wrap(
  cockatiel.timeout(PATIENCE_MS, { strategy: cockatiel.TimeoutStrategy.Cooperative, abortOnReturn: false }),
  cockatielRetry,
);

const pRetryOptions = { retries: RETRIES };
const pRetryPatient = { retries: RETRIES, maxRetryTime: PATIENCE_MS };
const asyncRetryOptions = { retries: RETRIES };
const asyncRetryPatient = { retries: RETRIES, maxRetryTime: PATIENCE_MS };
const backOffOptions = { numOfAttempts: ATTEMPTS };

const mollitiaRetry = new mollitia.Circuit({
  func: answer,
  options: { modules: [new mollitia.Retry({ attempts: RETRIES, interval: 200 })] },
});
const mollitiaPatient = new mollitia.Circuit({
  func: answer,
  options: {
    modules: [
      new mollitia.Timeout({ delay: PATIENCE_MS }),
      new mollitia.Retry({ attempts: RETRIES, interval: 200 }),
    ],
  },
});

const effectAnswer = Effect.tryPromise({ try: answer, catch: (error) => error });
const effectRetry = Effect.retry(effectAnswer, {
  times: RETRIES,
  schedule: Schedule.exponential('200 millis'),
});
const effectPatient = Effect.timeout(effectRetry, '10 seconds');

export const retrySuccess: Case = {
  case: 'retry success',
  unit: 'ns',
  better: 'lower',
  bars: [{ toFloorMax: 2.2 }],
  floor: bare,
  async ours(times) {
    for (let i = 0; i < times; i++) await unlimited.run(answer);
  },
  peers: {
    async cockatiel(times) {
      for (let i = 0; i < times; i++) await cockatielRetry.execute(answer);
    },
    async 'p-retry'(times) {
      for (let i = 0; i < times; i++) await pRetry(answer, pRetryOptions);
    },
    async 'async-retry'(times) {
      for (let i = 0; i < times; i++) await asyncRetry(answer, asyncRetryOptions);
    },
    async 'exponential-backoff'(times) {
      for (let i = 0; i < times; i++) await backOff(answer, backOffOptions);
    },
    async mollitia(times) {
      for (let i = 0; i < times; i++) await mollitiaRetry.execute();
    },
    async Effect(times) {
      for (let i = 0; i < times; i++) await Effect.runPromise(effectRetry);
    },
  },
};

export const retryWithPatience: Case = {
  case: 'retry with patience',
  unit: 'ns',
  better: 'lower',
  bars: [{ toFloorMax: 2.8 }],
  floor: bare,
  async ours(times) {
    for (let i = 0; i < times; i++) await patient.run(answer);
  },
  // exponential-backoff has no limit in time.
  peers: {
    async cockatiel(times) {
      for (let i = 0; i < times; i++) await cockatielPatient.execute(answer);
    },
    async 'p-retry'(times) {
      for (let i = 0; i < times; i++) await pRetry(answer, pRetryPatient);
    },
    async 'async-retry'(times) {
      for (let i = 0; i < times; i++) await asyncRetry(answer, asyncRetryPatient);
    },
    async mollitia(times) {
      for (let i = 0; i < times; i++) await mollitiaPatient.execute();
    },
    async Effect(times) {
      for (let i = 0; i < times; i++) await Effect.runPromise(effectPatient);
    },
  },
};
