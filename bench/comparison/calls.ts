import { getEventListeners } from 'node:events';
import * as cockatiel from 'cockatiel';
import { Effect, Schedule, Semaphore } from 'effect';
import { policy } from 'holdfast';
import pRetry from 'p-retry';
import type { Claim, Theme } from './claim.ts';
import { type FakeTime, inFakeTime, watch } from './fake-time.ts';

type Name = 'holdfast' | 'cockatiel' | 'p-retry' | 'effect';

type Operation = () => Promise<unknown>;

/** Runs an operation by the rules of a library. */
type Runner = (operation: Operation, signal: AbortSignal) => Promise<unknown>;

/** Called when time is fake already: what is made before has read the real clock. */
type MakeRunner = () => Runner;

const [DAY_MS, HOUR_MS] = [86_400_000, 3_600_000];
const LIMIT_MS = 1000;
const WAIT_MS = 600;

function effectOf(operation: Operation): Effect.Effect<unknown, unknown> {
  return Effect.tryPromise({ try: operation, catch: (error) => error });
}

/** An operation that always fails, with the times of its calls and the latest error. */
function failing(time: FakeTime) {
  const calls = { at: [] as number[], error: undefined as unknown };
  const operation: Operation = async () => {
    calls.at.push(time.now());
    calls.error = new Error(`failure ${calls.at.length}`);
    throw calls.error;
  };
  return { calls, operation };
}

function onceFailing(time: FakeTime) {
  const at: number[] = [];
  const operation: Operation = async () => {
    if (at.push(time.now()) === 1) throw new Error('down');
  };
  return { at, operation };
}

/** The waits are an hour. The caller aborts after 10 ms. */
function abortDuringWait(make: MakeRunner) {
  return () =>
    inFakeTime(async (time) => {
      const { calls, operation } = failing(time);
      const caller = new AbortController();
      const running = watch(make()(operation, caller.signal));
      await time.pass(10);
      if (running.isSettled || calls.at.length !== 1) throw new Error('The wait did not begin.');
      caller.abort(new Error('the caller has left'));
      await time.pass(0);
      const isAtOnce = running.isSettled;
      await time.pass(DAY_MS);
      return isAtOnce && calls.at.length === 1;
    });
}

/** A thousand pieces of work, one each 10 ms. Every call fails. */
function outage(make: MakeRunner) {
  const pieces = 1000;
  return () =>
    inFakeTime(async (time) => {
      const { calls, operation } = failing(time);
      const run = make();
      const { signal } = new AbortController();
      for (let n = 0; n < pieces; n++) {
        const running = watch(run(operation, signal));
        await time.pass(10);
        if (!running.isSettled) throw new Error('A piece of work did not end.');
      }
      return calls.at.length / pieces;
    });
}

/** A call each 10 s. The first attempt of every second one fails. */
function successes(make: MakeRunner) {
  const pieces = 200;
  return () =>
    inFakeTime(async (time) => {
      const run = make();
      const { signal } = new AbortController();
      let succeeded = 0;
      for (let n = 0; n < pieces; n++) {
        let attempts = 0;
        const operation: Operation = async () => {
          if (++attempts === 1 && n % 2 === 0) throw new Error('down');
          succeeded++;
        };
        watch(run(operation, signal));
        await time.pass(10_000);
      }
      return succeeded / pieces;
    });
}

/** Work with a limit of 1 s and waits of 600 ms. Every call fails at once. */
function limited(
  make: MakeRunner,
  judge: (calls: ReturnType<typeof failing>['calls'], error: unknown) => boolean,
) {
  return () =>
    inFakeTime(async (time) => {
      const { calls, operation } = failing(time);
      const running = watch(make()(operation, new AbortController().signal));
      await time.pass(10_000);
      if (!running.isSettled || calls.at.length < 2)
        throw new Error('The work was not retried, or did not end.');
      return judge(calls, running.error);
    });
}

/** Exponential backoff with the defaults of the library. */
const defaultRunners = {
  holdfast() {
    const ours = policy({ retryOn: 'any' });
    return (operation) => ours.run(operation);
  },
  cockatiel() {
    const backoff = new cockatiel.ExponentialBackoff();
    const theirs = cockatiel.retry(cockatiel.handleAll, { maxAttempts: 3, backoff });
    return (operation) => theirs.execute(operation);
  },
  'p-retry': () => (operation) => pRetry(operation),
  effect: () => (operation) =>
    Effect.runPromise(
      Effect.retry(effectOf(operation), { times: 3, schedule: Schedule.exponential('100 millis') }),
    ),
} satisfies Record<Name, MakeRunner>;

const limitRunners = {
  holdfast: () => (operation) =>
    policy({
      retryOn: 'any',
      patience: LIMIT_MS,
      backoff: { base: WAIT_MS, cap: WAIT_MS, jitter: 'none' },
    }).run(operation),
  // Cooperative: the other strategy hides the error of the last attempt.
  cockatiel: () => (operation) =>
    cockatiel
      .wrap(
        cockatiel.timeout(LIMIT_MS, cockatiel.TimeoutStrategy.Cooperative),
        cockatiel.retry(cockatiel.handleAll, {
          maxAttempts: 3,
          backoff: new cockatiel.ConstantBackoff(WAIT_MS),
        }),
      )
      .execute(operation),
  'p-retry': () => (operation) =>
    pRetry(operation, { retries: 3, minTimeout: WAIT_MS, factor: 1, maxRetryTime: LIMIT_MS }),
  effect: () => (operation) =>
    Effect.runPromise(
      effectOf(operation).pipe(
        Effect.retry({ times: 3, schedule: Schedule.spaced(WAIT_MS) }),
        Effect.timeout(LIMIT_MS),
      ),
    ),
} satisfies Record<Name, MakeRunner>;

const inTime = (make: MakeRunner) => limited(make, ({ at }) => at.every((each) => each < LIMIT_MS));
const withRealError = (make: MakeRunner) => limited(make, (calls, error) => error === calls.error);

/** Twenty clients with a piece of work each, that fails once. Are their waits all the same? */
function defaultWaits(make: MakeRunner) {
  return () =>
    inFakeTime(async (time) => {
      const waits: number[] = [];
      const { signal } = new AbortController();
      for (let n = 0; n < 20; n++) {
        const { at, operation } = onceFailing(time);
        watch(make()(operation, signal));
        await time.pass(10_000);
        if (at.length > 1) waits.push(at[1]! - at[0]!);
      }
      if (waits.length < 2) throw new Error('Nothing was retried.');
      return new Set(waits).size > 1;
    });
}

/** One call holds the only place for ever, and another waits behind it, until its caller aborts. */
function abortInQueue(make: MakeRunner) {
  return () =>
    inFakeTime(async (time) => {
      const run = make();
      void run(() => new Promise(() => {}), new AbortController().signal);
      const caller = new AbortController();
      let isCalled = false;
      const waiting = watch(
        run(async () => {
          isCalled = true;
        }, caller.signal),
      );
      await time.pass(5);
      if (waiting.isSettled || isCalled) throw new Error('The call did not wait in a queue.');
      caller.abort(new Error('the caller has left'));
      await time.pass(0);
      return waiting.isSettled && !isCalled;
    });
}

/** A thousand calls, each with a failure, a wait and a success, and one signal for all of them. */
function listenersLeft(make: MakeRunner) {
  return () =>
    inFakeTime(async (time) => {
      const run = make();
      const { signal } = new AbortController();
      for (let n = 0; n < 1000; n++) {
        const { at, operation } = onceFailing(time);
        const running = watch(run(operation, signal));
        await time.pass(20);
        if (!running.isSettled || at.length !== 2) throw new Error('A call was not retried, or did not end.');
      }
      return getEventListeners(signal, 'abort').length === 0;
    });
}

const claims: readonly Claim<Name>[] = [
  {
    id: 'abort-during-wait',
    sentence: 'Aborting during a wait ends the wait at once, and nothing is called again',
    how: 'The wait is an hour, and the signal that the call was given aborts after 10 ms.',
    trials: {
      holdfast: abortDuringWait(
        () => (operation, signal) =>
          policy({
            retryOn: 'any',
            patience: '2d',
            backoff: { base: '1h', cap: '1h', jitter: 'none' },
          }).run(operation, { signal }),
      ),
      cockatiel: abortDuringWait(
        () => (operation, signal) =>
          cockatiel
            .retry(cockatiel.handleAll, { maxAttempts: 3, backoff: new cockatiel.ConstantBackoff(HOUR_MS) })
            .execute(operation, signal),
      ),
      'p-retry': abortDuringWait(
        () => (operation, signal) => pRetry(operation, { retries: 3, minTimeout: HOUR_MS, signal }),
      ),
      effect: abortDuringWait(
        () => (operation, signal) =>
          Effect.runPromise(
            Effect.retry(effectOf(operation), { times: 3, schedule: Schedule.spaced('1 hour') }),
            { signal },
          ),
      ),
    },
  },
  {
    id: 'outage-calls',
    sentence: 'Calls to a dead target for each piece of work',
    how: 'A thousand pieces of work, four attempts each, no waits, no breaker. Less is better. Only Holdfast has a budget for retries.',
    atMost: 1.1,
    trials: {
      holdfast: outage(() => {
        const ours = policy({ retryOn: 'any', attempts: 4, backoff: false, breaker: false });
        return (operation) => ours.run(operation);
      }),
      cockatiel: outage(() => {
        const theirs = cockatiel.retry(cockatiel.handleAll, { maxAttempts: 3 });
        return (operation) => theirs.execute(operation);
      }),
      'p-retry': outage(() => (operation) => pRetry(operation, { retries: 3, minTimeout: 0 })),
      effect: outage(() => (operation) => Effect.runPromise(Effect.retry(effectOf(operation), { times: 3 }))),
    },
  },
  {
    id: 'few-calls',
    sentence: 'Work that succeeds where few calls are made and every second first attempt fails',
    how: 'Two hundred calls, one each 10 s, with the defaults of row 6. More is better, and all peers are better here: this is the price of the budget in row 2, which takes so many failures for an outage. `budget: false` switches it off.',
    isShare: true,
    atLeast: 0.7,
    trials: {
      holdfast: successes(defaultRunners.holdfast),
      cockatiel: successes(defaultRunners.cockatiel),
      'p-retry': successes(defaultRunners['p-retry']),
      effect: successes(defaultRunners.effect),
    },
  },
  {
    id: 'nothing-after-limit',
    sentence: 'Nothing is called once the time limit for the whole work is over',
    how: 'The limit is 1 s, the waits are 600 ms. Effect has `Effect.timeout` around the retries; a schedule with `Schedule.upTo` looks at the time before the wait.',
    trials: {
      holdfast: inTime(limitRunners.holdfast),
      cockatiel: inTime(limitRunners.cockatiel),
      'p-retry': inTime(limitRunners['p-retry']),
      effect: inTime(limitRunners.effect),
    },
  },
  {
    id: 'real-error-after-limit',
    sentence: 'When that limit ends the work, the caller gets the error of the last attempt',
    how: 'The same work as in the row before.',
    trials: {
      holdfast: withRealError(limitRunners.holdfast),
      cockatiel: withRealError(limitRunners.cockatiel),
      'p-retry': withRealError(limitRunners['p-retry']),
      effect: withRealError(limitRunners.effect),
    },
  },
  {
    id: 'random-waits',
    sentence: 'Waits are random without being asked to',
    how: 'Twenty clients with the exponential backoff of each library and its defaults. p-retry has `randomize`, Effect has `Schedule.jittered`.',
    trials: {
      holdfast: defaultWaits(defaultRunners.holdfast),
      cockatiel: defaultWaits(defaultRunners.cockatiel),
      'p-retry': defaultWaits(defaultRunners['p-retry']),
      effect: defaultWaits(defaultRunners.effect),
    },
  },
  {
    id: 'no-listener-left',
    sentence: 'A thousand calls with one long-lived `AbortSignal` leave no listener on it',
    how: 'Each call fails once, waits 10 ms and succeeds, with a timeout for an attempt where the library has one.',
    trials: {
      holdfast: listenersLeft(() => {
        const ours = policy({
          retryOn: 'any',
          budget: false,
          breaker: false,
          backoff: { base: 10, jitter: 'none' },
          attemptTimeout: '1s',
        });
        return (operation, signal) => ours.run(operation, { signal });
      }),
      cockatiel: listenersLeft(() => {
        const theirs = cockatiel.wrap(
          cockatiel.retry(cockatiel.handleAll, {
            maxAttempts: 3,
            backoff: new cockatiel.ConstantBackoff(10),
          }),
          cockatiel.timeout(1000, cockatiel.TimeoutStrategy.Aggressive),
        );
        return (operation, signal) => theirs.execute(operation, signal);
      }),
      'p-retry': listenersLeft(
        () => (operation, signal) => pRetry(operation, { retries: 3, minTimeout: 10, signal }),
      ),
      effect: listenersLeft(
        () => (operation, signal) =>
          Effect.runPromise(
            effectOf(operation).pipe(
              Effect.timeout('1 second'),
              Effect.retry({ times: 3, schedule: Schedule.spaced(10) }),
            ),
            { signal },
          ),
      ),
    },
  },
  {
    id: 'abort-in-queue',
    sentence: 'An abort while waiting for a place (bulkhead) is noticed at once',
    how: 'One place, which a call holds for ever. Effect has a semaphore for it.',
    trials: {
      holdfast: abortInQueue(() => {
        const ours = policy({
          bulkhead: { concurrent: 1, queue: 10 },
          patience: 'unlimited',
          attemptTimeout: 'none',
        });
        return (operation, signal) => ours.run(operation, { signal });
      }),
      cockatiel: abortInQueue(() => {
        const theirs = cockatiel.bulkhead(1, 10);
        return (operation, signal) => theirs.execute(operation, signal);
      }),
      'p-retry': 'it has no bulkhead',
      effect: abortInQueue(() => {
        const semaphore = Semaphore.makeUnsafe(1);
        return (operation, signal) =>
          Effect.runPromise(semaphore.withPermit(effectOf(operation)), { signal });
      }),
    },
  },
];

export const calls: Theme<Name> = {
  name: 'calls',
  file: 'calls.ts',
  isInTurn: true,
  contestants: {
    holdfast: { label: 'Holdfast', packages: [] },
    cockatiel: { label: 'cockatiel', packages: ['cockatiel'] },
    'p-retry': { label: 'p-retry', packages: ['p-retry'] },
    effect: { label: 'Effect', packages: ['effect'] },
  },
  claims,
};
