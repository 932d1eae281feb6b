import * as cockatiel from 'cockatiel';
import { Effect, Scope } from 'effect';
import { CircuitBreaker } from 'effect/persistence';
import { policy } from 'holdfast';
import Opossum from 'opossum';
import type { Claim, Theme, Trial } from './claim.ts';
import { type FakeTime, inFakeTime, watch } from './fake-time.ts';

type Name = 'holdfast' | 'cockatiel' | 'opossum' | 'effect';

type Operation = () => Promise<unknown>;
type Breaker = (operation: Operation) => Promise<unknown>;

const OPEN_MS = 10_000;
const HOUR_MS = 3_600_000;

/**
 * Breakers that one failure opens for 10 s (Holdfast takes up to half of that off by chance), with one probe, and without a
 * time limit for a call.
 */
const makeBreaker: Readonly<Record<Name, () => Breaker>> = {
  holdfast() {
    const ours = policy({
      retryOn: 'any',
      attempts: 1,
      patience: 'unlimited',
      attemptTimeout: 'none',
      breaker: { consecutive: 1, openFor: OPEN_MS, probes: 1 },
    });
    return (operation) => ours.run(operation);
  },
  cockatiel() {
    const theirs = cockatiel.circuitBreaker(cockatiel.handleAll, {
      halfOpenAfter: OPEN_MS,
      breaker: new cockatiel.ConsecutiveBreaker(1),
    });
    return (operation) => theirs.execute(operation);
  },
  opossum() {
    const theirs = new Opossum((operation: Operation) => operation(), {
      timeout: false,
      resetTimeout: OPEN_MS,
      errorThresholdPercentage: 1,
    });
    return (operation) => theirs.fire(operation);
  },
  effect() {
    const theirs = Effect.runSync(
      CircuitBreaker.make({ tripPolicy: CircuitBreaker.consecutive(1), openDuration: OPEN_MS }).pipe(
        Scope.provide(Scope.makeUnsafe()),
        Effect.provide(CircuitBreaker.layerStoreMemory()),
      ),
    );
    return (operation) =>
      Effect.runPromise(
        theirs.execute(Effect.tryPromise({ try: operation, catch: (error) => error }), { key: 'target' }),
      );
  },
};

/** `make` makes a breaker that is closed and knows nothing. */
type Scenario = (make: () => Breaker, time: FakeTime) => Promise<boolean>;

function trialsOf(scenario: Scenario): Readonly<Record<Name, Trial>> {
  const trialOf = (name: Name) => () => inFakeTime((time) => scenario(makeBreaker[name], time));
  return {
    holdfast: trialOf('holdfast'),
    cockatiel: trialOf('cockatiel'),
    opossum: trialOf('opossum'),
    effect: trialOf('effect'),
  };
}

const fail: Operation = async () => {
  throw new Error('down');
};

const hang: Operation = () => new Promise(() => {});

/** Makes calls at once that never return. How many of them reach the target? */
async function admitted(call: Breaker, time: FakeTime, calls = 1): Promise<number> {
  let reached = 0;
  for (let n = 0; n < calls; n++) {
    watch(
      call(() => {
        reached++;
        return hang();
      }),
    );
  }
  await time.pass(0);
  return reached;
}

async function open(call: Breaker, time: FakeTime): Promise<void> {
  watch(call(fail));
  await time.pass(0);
  if ((await admitted(call, time)) > 0) throw new Error('The breaker did not open.');
}

/** The slow call begins while all is well. `afterMs`: when it succeeds, counted from when the breaker opened. */
async function reachedAfterLateSuccess(call: Breaker, time: FakeTime, afterMs: number): Promise<number> {
  const late = Promise.withResolvers<void>();
  watch(call(() => late.promise));
  await time.pass(0);
  await open(call, time);
  await time.pass(afterMs);
  late.resolve();
  await time.pass(0);
  return admitted(call, time, 10);
}

const claims: readonly Claim<Name>[] = [
  {
    id: 'late-success',
    sentence: 'A slow call that succeeds late does not close a breaker that has opened meanwhile',
    how: 'The success comes while the breaker is open (no call may pass then), and in another run when its time is over (one probe may pass, of ten calls).',
    trials: trialsOf(async (make, time) => {
      const whileOpen = await reachedAfterLateSuccess(make(), time, 1000);
      const afterwards = await reachedAfterLateSuccess(make(), time, OPEN_MS + 1000);
      return whileOpen === 0 && afterwards <= 1;
    }),
  },
  {
    id: 'hung-probe',
    sentence: 'A probe that never returns does not hold a breaker half-open for ever',
    how: 'A call is made every minute for an hour, without a time limit for a call. With a limit the probe fails in time: opossum has one of 10 s by default, cockatiel and Effect have a timeout to put inside the breaker.',
    trials: trialsOf(async (make, time) => {
      const call = make();
      await open(call, time);
      await time.pass(OPEN_MS + 1000);
      if ((await admitted(call, time)) !== 1) throw new Error('There was no probe.');
      for (let minute = 0; minute < 60; minute++) {
        await time.pass(60_000);
        if ((await admitted(call, time)) > 0) return true;
      }
      return false;
    }),
  },
  {
    id: 'wall-clock',
    sentence: 'A jump of the wall clock changes nothing about how long a breaker stays open',
    how: 'The clock is set forward by an hour just after the breaker has opened, and in another run back by an hour.',
    trials: trialsOf(async (make, time) => {
      const first = make();
      await open(first, time);
      time.jump(HOUR_MS);
      const tooEarly = await admitted(first, time);
      const second = make();
      await open(second, time);
      time.jump(-HOUR_MS);
      await time.pass(OPEN_MS + 1000);
      const inTime = await admitted(second, time);
      return tooEarly === 0 && inTime === 1;
    }),
  },
];

export const breakers: Theme<Name> = {
  name: 'breakers',
  file: 'breakers.ts',
  isInTurn: true,
  contestants: {
    holdfast: { label: 'Holdfast', packages: [] },
    cockatiel: { label: 'cockatiel', packages: ['cockatiel'] },
    opossum: { label: 'opossum', packages: ['opossum'] },
    effect: { label: 'Effect', packages: ['effect'] },
  },
  claims,
};
