import type { Judgement, Outcome } from '../decide/outcome.ts';
import type { Operation, Plan, RunOptions } from '../policy/plan.ts';
import { GuardedAttempt } from './attempt.ts';
import { needsMachineFor, type Refused, refuseFast } from './fast-refusal.ts';
import { settleSuccess, startAttempt } from './guarded-attempt.ts';
import type { GuardedWork } from './guarded-work.ts';
import { follow, type Run, returnOrThrow, soon } from './promise-driver.ts';
import { DONE, isJudged, judge } from './work.ts';

const okay: Judgement = { class: 'ok' };

/**
 * The short way through the guards, for a run that asks for nothing that needs the machine from its beginning, and finds all
 * of them open. A success needs no machine: it is built when an attempt fails or its time is up, and takes over from there.
 */
export function runFast<T>(
  plan: Plan,
  operation: Operation<T>,
  options: RunOptions | undefined,
): Promise<T> | undefined {
  if (options && needsMachineFor(options)) return undefined;
  const now = plan.needsClock || options?.target !== undefined ? plan.clock.now() : 0;
  const target = plan.targetOf!(options, now);
  const { breaker, bulkhead, budget } = target;
  if (breaker && !breaker.isClosed) {
    const refused = refuseFast(plan, options);
    return refused && later(refused);
  }
  // One that strangers share does not go by the name that was asked for.
  if (target.name !== options?.target || plan.reporter?.isHeard()) return undefined;
  if (bulkhead && !bulkhead.tryEnter()) return undefined;
  plan.counters.operations++;
  budget?.firstTry(now);
  const flight = startAttempt<FastAttempt<T>>(FastAttempt, plan, target, 1, now, now + plan.patienceMs)!;
  const promise = flight.endsAt < Infinity ? flight.promise(operation, options) : undefined;
  // Called from here: each frame that stands before the operation makes its errors dearer.
  let answer: PromiseLike<T> | T;
  try {
    answer = operation(flight);
  } catch (error) {
    answer = Promise.reject(error);
  }
  if (!promise) return passOn(flight, operation, options, answer);
  flight.attend(answer);
  return promise;
}

/**
 * Rejects a microtask later, when somebody listens: a rejection that nobody hears yet costs half as much again, and so does
 * one that is thrown, or that comes by `queueMicrotask`, for which Node makes a resource.
 */
function later({ error }: Refused): Promise<never> {
  return new Promise((_, reject) => {
    soon.then(() => reject(error));
  });
}

/** Takes what settles a promise out of its executor, which so needs no closure of its own: a tenth of what a call allocates. */
let taken: (value: never) => void;
function take(resolve: (value: never) => void): void {
  taken = resolve;
}

/** Without a limit in time, the promise of the operation is passed on. */
function passOn<T>(
  flight: GuardedAttempt,
  operation: Operation<T>,
  options: RunOptions | undefined,
  answer: PromiseLike<T> | T,
): Promise<T> {
  return Promise.resolve(answer).then(
    (value) => arrive(flight, operation, options, value),
    (error) => goOn(flight, operation, options, { ok: false, error }),
  );
}

function arrive<T>(
  flight: GuardedAttempt,
  operation: Operation<T>,
  options: RunOptions | undefined,
  value: T,
): T | Promise<T> {
  const { plan } = flight;
  const judged = judgeValue(plan, options, value);
  if (judged.class !== 'ok') return goOn(flight, operation, options, { ok: true, value }, judged);
  settleSuccess(flight, judged);
  return value;
}

function goOn<T>(
  flight: GuardedAttempt,
  operation: Operation<T>,
  options: RunOptions | undefined,
  outcome: Outcome,
  judged?: Judgement,
): T | Promise<T> {
  const work = takeOver(flight, options);
  const step = work.settled(flight.plan.clock.now(), flight, outcome, judged);
  if (step >= DONE) return returnOrThrow<T>(work);
  const { run, promise } = follow(work, operation, undefined, returnOrThrow<T>);
  run.go(run.told(step));
  return promise;
}

/** With one, nobody waits longer than that, whatever the operation does. */
class FastAttempt<T> extends GuardedAttempt {
  declare operation: Operation<T>;
  declare options: RunOptions | undefined;
  declare resolve: (value: T | Promise<T>) => void;
  /** What goes on when the first attempt was not simply a success. */
  declare run: Run<T> | undefined;

  promise(operation: Operation<T>, options: RunOptions | undefined): Promise<T> {
    const promise = new Promise<T>(take);
    this.operation = operation;
    this.options = options;
    this.resolve = taken as typeof this.resolve;
    this.run = undefined;
    return promise;
  }

  attend(answer: PromiseLike<T> | T): void {
    Promise.resolve(answer).then(this.succeeded.bind(this), this.threw.bind(this));
    this.plan.clock.set(this, this.at);
  }

  override ring(now: number): void {
    if (this.over) super.ring(now);
    else {
      const { work, run } = this.machine();
      run.perform(run.told(work.alarm(now)));
    }
  }

  succeeded(value: T): void {
    const { plan, options, run } = this;
    const judged = run ? undefined : judgeValue(plan, options, value);
    if (judged?.class === 'ok') {
      plan.clock.clear(this);
      settleSuccess(this, judged);
      this.resolve(value);
    } else this.settled({ ok: true, value }, judged);
  }

  threw(error: unknown): void {
    this.settled({ ok: false, error });
  }

  settled(outcome: Outcome, judged?: Judgement): void {
    if (this.run) {
      this.run.go(this.run.settled(this, outcome));
      return;
    }
    const { clock } = this.plan;
    clock.clear(this);
    const { work, run } = this.machine();
    run.go(run.told(work.settled(clock.now(), this, outcome, judged)));
  }

  /** What goes on from here. */
  machine(): { work: GuardedWork; run: Run<T> } {
    const work = takeOver(this, this.options);
    const { run, promise } = follow(work, this.operation, undefined, returnOrThrow<T>);
    this.run = run;
    this.resolve(promise);
    return { work, run };
  }
}

/** A value that nobody judges is good. */
function judgeValue(plan: Plan, options: RunOptions | undefined, value: unknown): Judgement {
  return isJudged(plan, options, value) ? judge(plan, options, { ok: true, value }) : okay;
}

function takeOver(flight: GuardedAttempt, options: RunOptions | undefined): GuardedWork {
  const { plan, on, startedAt, patienceEndsAt } = flight;
  const work = plan.work(
    options,
    plan.needsClock ? startedAt : plan.clock.now(),
    patienceEndsAt,
  ) as GuardedWork;
  work.adopt(flight, on.budget);
  return work;
}
