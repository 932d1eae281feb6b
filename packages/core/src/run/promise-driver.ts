import type { Outcome } from '../decide/outcome.ts';
import { readDuration } from '../policy/duration.ts';
import type { Plan } from '../policy/plan.ts';
import { recordEnding, type Story } from '../report/story.ts';
import { type AbortListener, offAbort, onAbort } from '../time/abort-listeners.ts';
import { Alarm } from '../time/clock.ts';
import { ambient, ambientContext, isRetriedElsewhere } from './ambient-context.ts';
import type { Attempt } from './attempt.ts';
import { schedule, stepAfter, stepAt } from './driver.ts';
import type { Operation, RunOptions } from './run-options.ts';
import { DONE, type Driver, SEND, type Step, WAIT } from './step.ts';
import type { Work } from './work.ts';

/**
 * In addition to steps, `Run.step` accepts these two values: an attempt has returned a value, or has thrown.
 */
const RETURNED = 4;
const THREW = 5;

/** How a run ended. `policy.try` returns it. */
export type Ending<T> = Success<T> | Failure<T>;

/** The result of a run that succeeded. */
export interface Success<T> {
  readonly ok: true;
  readonly value: T;
  readonly story: Story;
  /** Where the value comes from, if the operation did not return it. */
  readonly from?: 'fallback' | 'cache' | undefined;
}

/** The result of a run that failed. */
export interface Failure<T> {
  readonly ok: false;
  /**
   * False: nothing was thrown, but the returned value was classified as a failure. In this case `run` returns
   * that value.
   */
  readonly thrown: boolean;
  readonly error: unknown;
  readonly value: T | undefined;
  readonly story: Story;
}

/** Performs the steps of one run, with promises. The state machine `Work` makes all decisions. */
export class Run<T> extends Alarm implements Driver, AbortListener {
  declare readonly work: Work;
  declare readonly operation: Operation<T>;
  declare readonly signal: AbortSignal | undefined;
  declare readonly settle: () => void;
  /** Sends an attempt in the async context of the caller. Undefined before `captureContext` is called. */
  declare sendInContext: ((attempt: Attempt) => void) | undefined;

  constructor(work: Work, operation: Operation<T>, signal: AbortSignal | undefined, settle: () => void) {
    super();
    this.work = work;
    this.operation = operation;
    this.signal = signal;
    this.settle = settle;
    this.sendInContext = undefined;
    work.driver = this;
    if (signal) onAbort(signal, this);
  }

  /**
   * Performs a step that a timer or a queue has caused. The current async context may belong to an unrelated
   * caller. So the operation is called in the context of its own caller, or in none.
   */
  perform(step: Step): void {
    const { work, sendInContext } = this;
    if (step === SEND) {
      const attempt = work.current as Attempt;
      this.sendInContext = undefined;
      if (sendInContext) sendInContext(attempt);
      else work.plan.runWithoutContext!(() => this.sendIfLive(attempt));
    } else this.finishStep(step);
  }

  /**
   * Keeps the async context of the caller for the next attempt. This works because a `then` callback runs in
   * the context in which `then` was called.
   */
  captureContext(): void {
    if (this.sendInContext) return;
    new Promise<Attempt>((resolve) => {
      this.sendInContext = resolve;
    }).then((attempt) => this.sendIfLive(attempt));
  }

  sendIfLive(attempt: Attempt): void {
    const { work } = this;
    if (!work.isLate(work.plan.clock.now(), attempt)) this.step(SEND);
  }

  /**
   * Performs a step. For RETURNED or THREW, it performs the step that follows the end of the attempt `from`.
   * Call it in the async context of the caller. It is one long function, because each stack frame makes
   * errors of the operation slower to create.
   */
  step(input: Step | typeof RETURNED | typeof THREW | undefined, from?: Attempt, result?: unknown): void {
    const { work, operation } = this;
    const step =
      input === RETURNED
        ? this.onOutcome(from!, { ok: true, value: result })
        : input === THREW
          ? this.onOutcome(from!, { ok: false, error: result })
          : input;
    if (step === SEND) {
      const attempt = work.current as Attempt;
      let answer: PromiseLike<T> | T;
      try {
        const { reporter } = work.plan;
        answer = reporter?.isHeard()
          ? reporter.enter(work, attempt, () => operation(attempt))
          : operation(attempt);
      } catch (error) {
        answer = Promise.reject(error);
      }
      this.observe(attempt, answer);
      // The operation itself may have cancelled the run.
      if (work.stop) return;
    }
    if (step === undefined) return;
    if (step === WAIT || work.plan.hedge) this.captureContext();
    this.finishStep(step);
  }

  observe(attempt: Attempt, answer: PromiseLike<T> | T): void {
    Promise.resolve(answer).then(
      this.step.bind(this, RETURNED, attempt),
      this.step.bind(this, THREW, attempt),
    );
  }

  onOutcome(attempt: Attempt, outcome: Outcome): Step | undefined {
    const { work } = this;
    const step = stepAfter(work, this, attempt, outcome);
    // The timer ended this attempt earlier, in another async context. This code runs in the caller's context,
    // so it captures that context for the next attempt.
    if (step === undefined && work.endedAt < 0) this.captureContext();
    return step;
  }

  ring(now: number): void {
    this.perform(stepAt(this.work, now));
  }

  aborted(reason: unknown): void {
    const { work } = this;
    // A listener may abort the signal when the run has already ended. In this case nothing is done.
    if (work.endedAt < 0) this.step(work.cancel(work.plan.clock.now(), reason));
  }

  private finishStep(step: Step): void {
    if (step < DONE) schedule(this.work, this);
    else {
      this.work.plan.clock.clear(this);
      if (this.signal) offAbort(this.signal, this);
      this.settle();
    }
  }
}

/**
 * Runs `operation` under a compiled policy and returns its value. If the run fails, throws the last error of
 * `operation` unchanged.
 */
export function run<T>(plan: Plan, operation: Operation<T>, options: RunOptions | undefined): Promise<T> {
  return start(plan, operation, options, returnOrThrow<T>);
}

/** Runs `operation` under a compiled policy and returns how the run ended. The promise never rejects. */
export function attemptRun<T>(plan: Plan, operation: Operation<T>, options?: RunOptions): Promise<Ending<T>> {
  return start(plan, operation, options, endingOf<T>);
}

function start<T, R>(
  plan: Plan,
  operation: Operation<T>,
  options: RunOptions | undefined,
  read: (work: Work) => R,
): Promise<R> {
  const around = ambientContext();
  const now = plan.clock.now();
  const patienceMs = readDuration(options?.patience ?? plan.patienceMs);
  const priority = around?.priority;
  const work = plan.work(
    priority && !options?.priority ? { ...options, priority } : options,
    now,
    Math.min(now + patienceMs, around?.patienceEndsAt ?? Infinity),
  );
  const signal = options?.signal ?? around?.signal;
  if (isRetriedElsewhere(around)) work.retryVeto = 'not_owner';
  const step = work.begin(now, signal);
  // The result is read one microtask later, when the caller has added its handler. Without a handler, a
  // rejection takes 1.5 times as long.
  if (step >= DONE) return soon.then(() => read(work));
  const { run, promise } = follow(
    work,
    options?.ambient ? ambient(work, operation) : operation,
    signal,
    read,
  );
  run.step(step);
  // A listener of the notice `start` may already have aborted the signal.
  if (signal?.aborted) run.aborted(signal.reason);
  return promise;
}

/** A resolved promise: its `then` callbacks run one microtask later. */
export const soon: Promise<void> = /* @__PURE__ */ Promise.resolve();

/**
 * Creates the driver (it performs the steps of `work`), and the promise of the result. The caller performs
 * the first step.
 */
export function follow<T, R>(
  work: Work,
  operation: Operation<T>,
  signal: AbortSignal | undefined,
  read: (work: Work) => R,
): { run: Run<T>; promise: Promise<R> } {
  let run: Run<T>;
  const promise = new Promise<R>((resolve, reject) => {
    run = new Run(work, operation, signal, () => settle(work, read, resolve, reject));
  });
  return { run: run!, promise };
}

function settle<R>(
  work: Work,
  read: (work: Work) => R,
  resolve: (value: R) => void,
  reject: (error: unknown) => void,
): void {
  try {
    resolve(read(work));
  } catch (error) {
    reject(error);
  }
}

export function returnOrThrow<T>(work: Work): T {
  if (work.stop && !conclude(work).resultIsValue) throw work.result;
  return work.result as T;
}

/** Returns the value of an ending, or throws its error, as `policy.run` does. */
export function unwrap<T>(ending: Ending<T>): T {
  if (ending.ok || !ending.thrown) return ending.value as T;
  throw ending.error;
}

function endingOf<T>(work: Work): Ending<T> {
  return work.stop ? new Failed<T>(work) : { ok: true, value: work.result as T, story: work.story };
}

/** A failed run. Its error is created only when it is read, because creating errors is slow. */
class Failed<T> implements Failure<T> {
  readonly ok = false;
  readonly #work: Work;

  constructor(work: Work) {
    this.#work = work;
  }

  get thrown(): boolean {
    return !this.#work.resultIsValue;
  }

  get error(): unknown {
    return this.#work.resultIsValue ? undefined : conclude(this.#work).result;
  }

  get value(): T | undefined {
    return this.#work.resultIsValue ? (conclude(this.#work).result as T) : undefined;
  }

  get story(): Story {
    return this.#work.story;
  }
}

function conclude(work: Work): Work {
  work.result = work.refusal();
  recordEnding(work.result, { story: work.story, serial: work.serial });
  return work;
}
