import type { Outcome } from '../decide/outcome.ts';
import { readDuration } from '../policy/duration.ts';
import type { Operation, Plan, RunOptions } from '../policy/plan.ts';
import { recordEnding, type Story } from '../report/story.ts';
import { offAbort, onAbort } from '../time/abort-listeners.ts';
import { Alarm } from '../time/clock.ts';
import { ambient, ambientContext } from './ambient-context.ts';
import type { Attempt } from './attempt.ts';
import { DONE, SEND, STOP, type Step, takeOver, WAIT, type Work } from './work.ts';

/** What `Run.go` hears besides steps: an attempt gave a value, or threw. */
const GAVE = 4;
const THREW = 5;

/** How a run ended, for `try`. */
export type Ending<T> = Success<T> | Failure<T>;

export interface Success<T> {
  readonly ok: true;
  readonly value: T;
  readonly story: Story;
  /** Where the value comes from, when it is not from the operation. */
  readonly from?: 'fallback' | 'cache' | undefined;
}

export interface Failure<T> {
  readonly ok: false;
  /** False where the end is a value that was judged a failure: `run` returns it. */
  readonly thrown: boolean;
  readonly error: unknown;
  readonly value: T | undefined;
  readonly story: Story;
}

/** The thin async shell: performs the steps of one piece of work, and decides nothing. */
export class Run<T> extends Alarm {
  declare readonly work: Work;
  declare readonly operation: Operation<T>;
  declare readonly signal: AbortSignal | undefined;
  declare readonly settle: () => void;
  /** Calls the operation for an attempt, in the context of the caller. */
  declare enter: ((attempt: Attempt) => void) | undefined;

  constructor(work: Work, operation: Operation<T>, signal: AbortSignal | undefined, settle: () => void) {
    super();
    this.work = work;
    this.operation = operation;
    this.signal = signal;
    this.settle = settle;
    this.enter = undefined;
    work.driver = this;
    if (signal) onAbort(signal, this);
  }

  /**
   * Performs a step that comes from a timer or a queue, and so in a context that is somebody else's: what users keep
   * there (a request, a trace, a tenant) must not be mixed up. The operation is called in the context of its caller, or
   * in none where that is not at hand.
   */
  perform(step: Step): void {
    const { work, enter } = this;
    if (step === SEND) {
      const attempt = work.current as Attempt;
      this.enter = undefined;
      if (enter) enter(attempt);
      else work.plan.outside!(() => this.arrive(attempt));
    } else this.rest(step);
  }

  /** Keeps hold of the context, which is the caller's now, for the next attempt: a promise's reactions run in it. */
  hold(): void {
    if (this.enter) return;
    new Promise<Attempt>((resolve) => {
      this.enter = resolve;
    }).then((attempt) => this.arrive(attempt));
  }

  /** The caller may have left on the way here. */
  arrive(attempt: Attempt): void {
    const { work } = this;
    if (!work.isLate(work.plan.clock.now(), attempt)) this.go(SEND);
  }

  /**
   * Performs a step in the context of the caller, or the one that follows from what an attempt gave or threw. Nothing is
   * done for one that is undefined. One function for all, and bound to what it hears: each frame that stands between a
   * reaction and the operation makes every error of the operation dearer.
   */
  go(news: Step | typeof GAVE | typeof THREW | undefined, from?: Attempt, given?: unknown): void {
    const { work, operation } = this;
    const step =
      news === GAVE
        ? this.settled(from!, { ok: true, value: given })
        : news === THREW
          ? this.settled(from!, { ok: false, error: given })
          : news;
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
      this.attend(attempt, answer);
      // The operation itself may have made the caller leave.
      if (work.stop) return;
    }
    if (step === undefined) return;
    if (step === WAIT || work.plan.hedge) this.hold();
    this.rest(step);
  }

  attend(attempt: Attempt, answer: PromiseLike<T> | T): void {
    Promise.resolve(answer).then(this.go.bind(this, GAVE, attempt), this.go.bind(this, THREW, attempt));
  }

  /** Sets the alarm, or ends. */
  rest(step: Step): void {
    const { work } = this;
    const { clock } = work.plan;
    if (step < DONE) {
      if (work.wakeAt < Infinity) clock.set(this, work.wakeAt);
    } else {
      clock.clear(this);
      if (this.signal) offAbort(this.signal, this);
      this.settle();
    }
  }

  settled(attempt: Attempt, outcome: Outcome): Step | undefined {
    const { work } = this;
    const { clock } = work.plan;
    const now = clock.now();
    if (work.isLate(now, attempt)) {
      // Its time was up: the wait that came of that began without the context.
      if (work.endedAt < 0) this.hold();
      return undefined;
    }
    clock.clear(this);
    return this.told(
      outcome.ok ? work.succeeded(now, attempt, outcome.value) : work.settled(now, attempt, outcome),
    );
  }

  /** Tells the caller of the wait to come. If that throws, it is as if the caller had left. */
  told(step: Step): Step {
    const { work } = this;
    const { attempt, options, patienceEndsAt, previousDelayMs: delayMs } = work;
    if (step !== WAIT || !work.backingOff || !delayMs || !options?.onWait) return step;
    const now = work.plan.clock.now();
    try {
      options.onWait({
        attempt,
        delayMs,
        because: work.log.at(-1)!.class,
        patienceLeft: patienceEndsAt - now,
      });
      return work.stop ? STOP : WAIT;
    } catch (error) {
      return work.cancel(now, error);
    }
  }

  ring(now: number): void {
    const { work } = this;
    const { backingOff } = work;
    const step = work.alarm(now);
    // Of a wait that had begun before, the caller knows.
    this.perform(backingOff ? step : this.told(step));
  }

  aborted(reason: unknown): void {
    const { work } = this;
    // A listener may abort the signal while it is told of the end; the outcome stands.
    if (work.endedAt < 0) this.go(work.cancel(work.plan.clock.now(), reason));
  }
}

/** Runs `operation` under `plan`; what it throws in the end is thrown untouched. */
export function run<T>(plan: Plan, operation: Operation<T>, options: RunOptions | undefined): Promise<T> {
  return start(plan, operation, options, returnOrThrow<T>);
}

/** Runs `operation` under `plan` and tells how it ended; never throws. */
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
  // A refusal is thrown a microtask later, when somebody listens: a rejection that nobody hears yet costs
  // half as much again.
  if (step >= DONE) return soon.then(() => read(work));
  const { run, promise } = follow(
    work,
    options?.ambient ? ambient(work, operation) : operation,
    signal,
    read,
  );
  run.go(step);
  // One who left on the way here, because of a notice, was not listened to yet.
  if (signal?.aborted) run.aborted(signal.reason);
  return promise;
}

/** What follows on it comes a microtask later. */
export const soon: Promise<void> = /* @__PURE__ */ Promise.resolve();

/** A run of `work`, and the promise of what it gives; somebody has to perform its first step. */
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

/**
 * Goes on where the short way of `policy.run` ends, because its attempt threw. Bound to that, and it calls the operation
 * itself: so few frames stand between the two.
 */
export function rescue<T>(
  this: Attempt,
  operation: Operation<T>,
  startedAt: number,
  error: unknown,
): T | Promise<T> {
  const { plan } = this;
  const now = plan.clock.now();
  const work = takeOver(this, plan.needsClock ? startedAt : now);
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
    run.attend(attempt, answer);
  } else run.go(step);
  return promise;
}

export function returnOrThrow<T>(work: Work): T {
  if (work.stop && !conclude(work).isValue) throw work.given;
  return work.given as T;
}

function endingOf<T>(work: Work): Ending<T> {
  return work.stop ? new Failed<T>(work) : { ok: true, value: work.given as T, story: work.story };
}

/** A failure whose error is made when it is read: a refusal that nobody looks at costs next to nothing. */
class Failed<T> implements Failure<T> {
  readonly ok = false;
  readonly #work: Work;

  constructor(work: Work) {
    this.#work = work;
  }

  get thrown(): boolean {
    return !this.#work.isValue;
  }

  get error(): unknown {
    return this.#work.isValue ? undefined : conclude(this.#work).given;
  }

  get value(): T | undefined {
    return this.#work.isValue ? (conclude(this.#work).given as T) : undefined;
  }

  get story(): Story {
    return this.#work.story;
  }
}

function conclude(work: Work): Work {
  work.given = work.refusal();
  recordEnding(work.given, { story: work.story, born: work.born });
  return work;
}
