import * as cockatiel from 'cockatiel';
import { Effect, Schedule, Semaphore } from 'effect';
import { breaker, budget, bulkhead, definePolicy, retry, timeout } from 'holdfast';
import { Bulkhead, Circuit, Retry, SlidingCountBreaker, Timeout } from 'mollitia';
import Opossum from 'opossum';
import pRetry from 'p-retry';
import type { Case } from '../../harness.ts';
import { answer, bare } from './operation.ts';
import { cockatielBreaker, effectBreaker, mollitiaOptions, opossumOptions } from './peer-breakers.ts';

// Four attempts, one second each at most, a breaker, a hundred at once and fifty in a queue. Ours has patience and a retry
// budget as well, which no peer has; p-retry and Effect have a kind of patience.
const RETRIES = 3;
const ATTEMPT_MS = 1000;
const PATIENCE_MS = 10_000;
const OPEN_MS = 10_000;
const CONCURRENT = 100;
const QUEUE = 50;

const ours = definePolicy([retry, timeout, budget, breaker, bulkhead])({
  patience: PATIENCE_MS,
  attempts: RETRIES + 1,
  attemptTimeout: ATTEMPT_MS,
  budget: {},
  breaker: {},
  bulkhead: { concurrent: CONCURRENT, queue: QUEUE },
});

// At its best: it need not abort the signal of a call that has succeeded, and nor do we.
const cockatielWrap = cockatielPipeline(false);
const cockatielByDefault = cockatielPipeline(true);

// Its bulkhead has no queue.
const opossum = new Opossum(answer, {
  ...opossumOptions(OPEN_MS),
  timeout: ATTEMPT_MS,
  capacity: CONCURRENT,
});
const pRetryOptions = { retries: RETRIES, maxRetryTime: PATIENCE_MS };
const fire = () => opossum.fire();

const mollitia = new Circuit({
  func: answer,
  options: {
    modules: [
      new Retry({ attempts: RETRIES, interval: 200 }),
      new SlidingCountBreaker(mollitiaOptions(OPEN_MS)),
      new Bulkhead({ concurrentSize: CONCURRENT, queueSize: QUEUE }),
      new Timeout({ delay: ATTEMPT_MS }),
    ],
  },
});

const effect = Effect.tryPromise({ try: answer, catch: (error) => error }).pipe(
  Effect.timeout(ATTEMPT_MS),
  Semaphore.withPermit(Semaphore.makeUnsafe(CONCURRENT)),
  effectBreaker(OPEN_MS).execute({ key: 'target' }),
  Effect.retry({ times: RETRIES, schedule: Schedule.exponential('200 millis') }),
);

const contestants: Pick<Case, 'floor' | 'ours' | 'peers'> = {
  floor: bare,
  async ours(times) {
    for (let i = 0; i < times; i++) await ours.run(answer);
  },
  peers: {
    async 'p-retry + opossum'(times) {
      for (let i = 0; i < times; i++) await pRetry(fire, pRetryOptions);
    },
    async cockatiel(times) {
      for (let i = 0; i < times; i++) await cockatielWrap.execute(answer);
    },
    async 'cockatiel, by default'(times) {
      for (let i = 0; i < times; i++) await cockatielByDefault.execute(answer);
    },
    async mollitia(times) {
      for (let i = 0; i < times; i++) await mollitia.execute();
    },
    async Effect(times) {
      for (let i = 0; i < times; i++) await Effect.runPromise(effect);
    },
  },
};

/** Aggressive: a hard timeout, as ours is. */
function cockatielPipeline(abortOnReturn: boolean): cockatiel.IPolicy {
  return cockatiel.wrap(
    cockatiel.retry(cockatiel.handleAll, {
      maxAttempts: RETRIES,
      backoff: new cockatiel.ExponentialBackoff(),
    }),
    cockatielBreaker(OPEN_MS),
    cockatiel.bulkhead(CONCURRENT, QUEUE),
    cockatiel.timeout(ATTEMPT_MS, { strategy: cockatiel.TimeoutStrategy.Aggressive, abortOnReturn }),
  );
}

export const pipelineSuccess: Case = {
  ...contestants,
  case: 'pipeline success',
  unit: 'ns',
  better: 'lower',
  bars: [{ toFloorMax: 6 }, { aheadOf: 'cockatiel', times: 10 }, { aheadOf: 'p-retry + opossum', times: 3 }],
};

export const pipelineBytes: Case = {
  ...contestants,
  case: 'pipeline bytes',
  unit: 'bytes',
  better: 'lower',
  bars: [{ oursMax: 1024 }],
};
