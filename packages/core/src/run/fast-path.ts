import type { Judgement, Outcome } from '../decide/outcome.ts';
import type { Plan } from '../policy/plan.ts';
import { ambientContext } from './ambient-context.ts';
import { Attempt, GuardedAttempt } from './attempt.ts';
import { notifyWait, stepAt } from './driver.ts';
import { needsMachineFor, type Refused, refuseFast } from './fast-refusal.ts';
import { settleSuccess, startAttempt } from './guarded-attempt.ts';
import { follow, type Run, returnOrThrow, run, soon, unwrap } from './promise-driver.ts';
import type { Operation, RunOptions } from './run-options.ts';
import { argumentsError } from './run-options.ts';
import { DONE, SEND } from './step.ts';
import { isJudged, judge, type Work } from './work.ts';

/**
 * Returns the function `policy.run`. For each run it chooses the cheapest possible way:
 *
 * 1. Call the operation directly: for a policy without guards (breaker, bulkhead, …) and a run without
 *    options.
 * 2. `runFast`: while all guards admit calls.
 * 3. Run inside the layers: for a policy with a cache, a fallback or a mode.
 * 4. Create the state machine `Work` at the start, for example for a run with a signal.
 *
 * The first two ways create the state machine only when an attempt fails or times out. The first way is not a
 * separate function, because each stack frame makes errors of the operation slower to create.
 */
export function runnerOf(made: {
  readonly plan: Plan;
}): <T>(operation: Operation<T>, options?: RunOptions) => Promise<T> {
  return function run_<T>(operation: Operation<T>, options?: RunOptions): Promise<T> {
    const { plan } = made;
    const wrong = (options || typeof operation !== 'function') && argumentsError(operation, options, plan);
    // Invalid arguments reject the promise, because `run` must not throw synchronously.
    if (wrong) return Promise.reject(wrong);
    const { canSkipMachine, fastPath, runLayers } = plan;
    if (canSkipMachine && !options && !ambientContext()) {
      const now = plan.needsClock ? plan.clock.now() : 0;
      const attempt = startPlainAttempt(plan, now + plan.patienceMs);
      let answer: PromiseLike<T> | T;
      try {
        answer = operation(attempt);
      } catch (error) {
        answer = Promise.reject(error);
      }
      return Promise.resolve(answer).then(
        plan.countSuccess as (value: T) => T,
        (retryPlain<T>).bind(attempt, operation, now),
      );
    }
    if (fastPath && !ambientContext()) {
      return fastPath(plan, operation, options) ?? run(plan, operation, options);
    }
    if (runLayers) return runLayers(plan, operation, options).then(unwrap);
    return run(plan, operation, options);
  };
}

/** Counts an operation and its first attempt, and returns this attempt. For policies without guards. */
export function startPlainAttempt(plan: Plan, patienceEndsAt: number): Attempt {
  plan.counters.operations++;
  plan.counters.attempts++;
  return new Attempt(plan, 1, patienceEndsAt);
}

/** Creates the state machine for a run whose first attempt was made without one. */
export function machineFor({ plan, attempt, serial, patienceEndsAt }: Attempt, startedAt: number): Work {
  const work = plan.work(undefined, startedAt, patienceEndsAt);
  work.attempt = attempt;
  work.serial = serial;
  return work;
}

/**
 * Called when a first attempt that was made without the state machine has thrown. Creates the state machine,
 * which decides about a retry.
 */
function retryPlain<T>(
  this: Attempt,
  operation: Operation<T>,
  startedAt: number,
  error: unknown,
): T | Promise<T> {
  const { plan } = this;
  const now = plan.clock.now();
  const work = machineFor(this, plan.needsClock ? startedAt : now);
  const step = work.settled(now, this, { ok: false, error });
  if (step >= DONE) return returnOrThrow<T>(work);
  const { run, promise } = follow(work, operation, undefined, returnOrThrow<T>);
  if (step === SEND) {
    const attempt = work.current as Attempt;
    let answer: PromiseLike<T> | T;
    try {
      answer = operation(attempt);
    } catch (error) {
      answer = Promise.reject(error);
    }
    run.observe(attempt, answer);
  } else run.step(step);
  return promise;
}

const okay: Judgement = { class: 'ok' };

/**
 * Runs an operation without the state machine `Work`, if all guards admit the call. The state machine is
 * created only when an attempt fails or times out. Returns undefined if this run needs the state machine from
 * the start.
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
    return refused && rejectSoon(refused);
  }
  // When there are too many targets, several names share the overflow target. Only the state machine can
  // restore the name that the run asked for.
  if (target.name !== options?.target || plan.reporter?.isHeard()) return undefined;
  if (bulkhead && !bulkhead.tryEnter()) return undefined;
  plan.counters.operations++;
  budget?.firstTry(now);
  const guarded = startAttempt<FastAttempt<T>>(FastAttempt, plan, target, 1, now, now + plan.patienceMs)!;
  const promise = guarded.endsAt < Infinity ? guarded.promise(operation, options) : undefined;
  let answer: PromiseLike<T> | T;
  try {
    answer = operation(guarded);
  } catch (error) {
    answer = Promise.reject(error);
  }
  if (!promise) return passOn(guarded, operation, options, answer);
  guarded.observe(answer);
  return promise;
}

/**
 * Returns a promise that rejects one microtask later, when the caller has already added its handler.
 * Rejecting a promise without a handler takes 1.5 times as long.
 */
function rejectSoon({ error }: Refused): Promise<never> {
  return new Promise((_, reject) => {
    soon.then(() => reject(error));
  });
}

/**
 * `take` stores the `resolve` function of a new promise here. A closure instead would be a tenth of all
 * memory that a call allocates.
 */
let taken: (value: never) => void;
function take(resolve: (value: never) => void): void {
  taken = resolve;
}

function passOn<T>(
  guarded: GuardedAttempt,
  operation: Operation<T>,
  options: RunOptions | undefined,
  answer: PromiseLike<T> | T,
): Promise<T> {
  return Promise.resolve(answer).then(
    (value) => onValue(guarded, operation, options, value),
    (error) => continueWith(guarded, operation, options, { ok: false, error }),
  );
}

function onValue<T>(
  guarded: GuardedAttempt,
  operation: Operation<T>,
  options: RunOptions | undefined,
  value: T,
): T | Promise<T> {
  const { plan } = guarded;
  const judged = judgeValue(plan, options, value);
  if (judged.class !== 'ok') return continueWith(guarded, operation, options, { ok: true, value }, judged);
  settleSuccess(guarded, judged);
  return value;
}

function continueWith<T>(
  guarded: GuardedAttempt,
  operation: Operation<T>,
  options: RunOptions | undefined,
  outcome: Outcome,
  judged?: Judgement,
): T | Promise<T> {
  const work = guardedMachineFor(guarded, options);
  const step = work.settled(guarded.plan.clock.now(), guarded, outcome, judged);
  if (step >= DONE) return returnOrThrow<T>(work);
  const { run, promise } = follow(work, operation, undefined, returnOrThrow<T>);
  run.step(notifyWait(work, step));
  return promise;
}

/**
 * An attempt with a time limit, outside of the state machine. Its promise settles at the limit, even if the
 * operation never ends.
 */
class FastAttempt<T> extends GuardedAttempt {
  declare operation: Operation<T>;
  declare options: RunOptions | undefined;
  declare resolve: (value: T | Promise<T>) => void;
  /** Continues the run after the first attempt has failed; undefined until then. */
  declare run: Run<T> | undefined;

  promise(operation: Operation<T>, options: RunOptions | undefined): Promise<T> {
    const promise = new Promise<T>(take);
    this.operation = operation;
    this.options = options;
    this.resolve = taken as typeof this.resolve;
    this.run = undefined;
    return promise;
  }

  observe(answer: PromiseLike<T> | T): void {
    Promise.resolve(answer).then(this.succeeded.bind(this), this.threw.bind(this));
    this.plan.clock.set(this, this.at);
  }

  override ring(now: number): void {
    if (this.abandoned) super.ring(now);
    else {
      const { work, run } = this.machine();
      run.perform(stepAt(work, now));
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
      this.run.step(this.run.onOutcome(this, outcome));
      return;
    }
    const { clock } = this.plan;
    clock.clear(this);
    const { work, run } = this.machine();
    run.step(notifyWait(work, work.settled(clock.now(), this, outcome, judged)));
  }

  /** Creates the state machine `Work`, which continues the run from this attempt. */
  machine(): { work: Work; run: Run<T> } {
    const work = guardedMachineFor(this, this.options);
    const { run, promise } = follow(work, this.operation, undefined, returnOrThrow<T>);
    this.run = run;
    this.resolve(promise);
    return { work, run };
  }
}

function judgeValue(plan: Plan, options: RunOptions | undefined, value: unknown): Judgement {
  return isJudged(plan, options, value) ? judge(plan, options, { ok: true, value }) : okay;
}

function guardedMachineFor(guarded: GuardedAttempt, options: RunOptions | undefined): Work {
  const { plan, targetState, startedAt, patienceEndsAt } = guarded;
  const work = plan.work(options, plan.needsClock ? startedAt : plan.clock.now(), patienceEndsAt);
  work.guards!.adopt(guarded, targetState.budget);
  return work;
}
