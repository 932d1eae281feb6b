import type { Outcome } from '../decide/outcome.ts';
import { readDuration } from '../policy/duration.ts';
import type { Plan } from '../policy/plan.ts';
import { recordEnding, type Story } from '../report/story.ts';
import { type AbortListener, offAbort, onAbort } from '../time/abort-listeners.ts';
import { Alarm } from '../time/clock.ts';
import { ambient, ambientContext } from './ambient-context.ts';
import type { Attempt } from './attempt.ts';
import { schedule, stepAfter, stepAt } from './driver.ts';
import type { Operation, RunOptions } from './run-options.ts';
import { DONE, type Driver, SEND, type Step, WAIT } from './step.ts';
import type { Work } from './work.ts';

/** Values that `Run.step` accepts besides steps: an attempt returned, or it threw. */
const RETURNED = 4;
const THREW = 5;

/** How a run ended, for `try`. */
export type Ending<T> = Success<T> | Failure<T>;

export interface Success<T> {
  readonly ok: true;
  readonly value: T;
  readonly story: Story;
  /** Where the value comes from, if not from the operation. */
  readonly from?: 'fallback' | 'cache' | undefined;
}

export interface Failure<T> {
  readonly ok: false;
  /** False: the work ended with a returned value that was classified as a failure. `run` returns that value. */
  readonly thrown: boolean;
  readonly error: unknown;
  readonly value: T | undefined;
  readonly story: Story;
}

/** Performs the steps of one piece of work with promises. All decisions are made in `Work`. */
export class Run<T> extends Alarm implements Driver, AbortListener {
  declare readonly work: Work;
  declare readonly operation: Operation<T>;
  declare readonly signal: AbortSignal | undefined;
  declare readonly settle: () => void;
  /** Sends an attempt in the async context of the caller; undefined until `captureContext` is called. */
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
   * Performs a step that comes from a timer or a queue, so it runs in the async context of another caller. What users
   * store in async contexts (a request, a trace, a tenant) must not be mixed up. So the operation is called in the
   * context of its own caller, or in no caller's context if its own was not captured.
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
   * Stores the current async context, which is the caller's, for the next attempt. It adds a promise reaction now,
   * which later runs in this context.
   */
  captureContext(): void {
    if (this.sendInContext) return;
    new Promise<Attempt>((resolve) => {
      this.sendInContext = resolve;
    }).then((attempt) => this.sendIfLive(attempt));
  }

  /** Sends the attempt, unless the run was cancelled between the timer and this microtask. */
  sendIfLive(attempt: Attempt): void {
    const { work } = this;
    if (!work.isLate(work.plan.clock.now(), attempt)) this.step(SEND);
  }

  /**
   * Performs a step in the async context of the caller: `input` itself, or the step that follows from what an attempt
   * returned or threw. Undefined does nothing. All of it is one function that promises call directly, because each
   * stack frame above the operation makes every error of the operation a microsecond slower to create.
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
    // The attempt had timed out, so its backoff began outside the caller's async context. This code runs in the
    // caller's context, so it is captured now.
    if (step === undefined && work.endedAt < 0) this.captureContext();
    return step;
  }

  ring(now: number): void {
    this.perform(stepAt(this.work, now));
  }

  aborted(reason: unknown): void {
    const { work } = this;
    // A listener that is notified of the end of the run may abort the signal. Then the result stays the same.
    if (work.endedAt < 0) this.step(work.cancel(work.plan.clock.now(), reason));
  }

  /** Sets the alarm for the next step, or ends the run. */
  private finishStep(step: Step): void {
    if (step < DONE) schedule(this.work, this);
    else {
      this.work.plan.clock.clear(this);
      if (this.signal) offAbort(this.signal, this);
      this.settle();
    }
  }
}

/** Runs `operation` under `plan`, the compiled policy. Throws the last error of the operation unchanged. */
export function run<T>(plan: Plan, operation: Operation<T>, options: RunOptions | undefined): Promise<T> {
  return start(plan, operation, options, returnOrThrow<T>);
}

/** Runs `operation` under `plan`, the compiled policy, and returns how it ended. Never throws. */
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
  if (around?.ownedUpstream) work.retryVeto = 'not_owner';
  const step = work.begin(now, signal);
  // A rejection without a handler takes 1.5 times as long, so the error of a refusal is thrown one microtask later.
  if (step >= DONE) return soon.then(() => read(work));
  const { run, promise } = follow(
    work,
    options?.ambient ? ambient(work, operation) : operation,
    signal,
    read,
  );
  run.step(step);
  // A listener of the first notice may have aborted the signal before the run listened to it.
  if (signal?.aborted) run.aborted(signal.reason);
  return promise;
}

/** A resolved promise: its reactions run one microtask later. */
export const soon: Promise<void> = /* @__PURE__ */ Promise.resolve();

/** Creates the run of `work` and the promise of its result. The caller then performs the first step. */
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

/** Returns the value of an ending, or throws its error, as `run` does. */
export function unwrap<T>(ending: Ending<T>): T {
  if (ending.ok || !ending.thrown) return ending.value as T;
  throw ending.error;
}

function endingOf<T>(work: Work): Ending<T> {
  return work.stop ? new Failed<T>(work) : { ok: true, value: work.result as T, story: work.story };
}

/** A failure that creates its error only when it is read, so that a refusal that nobody reads costs almost nothing. */
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
