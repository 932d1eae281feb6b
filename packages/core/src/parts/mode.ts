import type { Outcome } from '../decide/outcome.ts';
import type { Verdict } from '../decide/verdict.ts';
import { either, type FieldsOf, number, shape, word } from '../fields.ts';
import { mode as defaultMode } from '../policy/default-policy.ts';
import { definePart } from '../policy/part.ts';
import type { Plan } from '../policy/plan.ts';
import type { ModeFields } from '../policy/policy-spec.ts';
import { type AbortHandle, Attempt } from '../run/attempt.ts';
import { type Deadline, deadlineOf } from '../run/deadline.ts';
import { attemptRun, type Ending } from '../run/promise-driver.ts';
import type { Context, Operation, RunOptions } from '../run/run-options.ts';
import { judge, Work } from '../run/work.ts';
import { type AbortListener, offAbort, onAbort } from '../time/abort-listeners.ts';
import { sleep } from '../time/timer.ts';
import { addLayer, failure } from './layer.ts';

const fields = {
  mode: either(defaultMode, word(defaultMode, 'enforce', 'observe'), shape({ enforce: number(1, 0, 1) })),
} satisfies FieldsOf<ModeFields>;

/**
 * The part `mode`: whether the policy acts or only observes. With `observe`, each operation is called exactly
 * once, and the policy counts what it would have done. `{ enforce: 0.1 }` acts on a tenth of the runs and
 * observes the rest.
 */
export const mode = definePart<typeof fields, ModeFields>({
  key: 'mode',
  fields,
  create({ mode: setting }, plan) {
    const share = typeof setting === 'object' ? setting.enforce : setting === 'observe' ? 0 : 1;
    if (share === 1) return;
    plan.enforcedShare = share;
    let imagined: Plan | undefined;
    addLayer(plan, {
      order: 1,
      around(operation, options, next) {
        if (share > 0 && plan.random() < share) return next(options);
        // Simulated runs use the real breakers and budgets, but separate counters. So simulated attempts are
        // not counted as real.
        imagined ??= { ...plan, counters: plan.imaginedCounters };
        return observe(plan, imagined, operation, options);
      },
    });
  },
});

/**
 * Calls `operation` once, and simulates what the policy would do with its result. Each simulated retry fails
 * like the real call. So the number of retries is exact in an outage, and otherwise may be too high.
 */
async function observe<T>(
  plan: Plan,
  imagined: Plan,
  operation: Operation<T>,
  options: RunOptions,
): Promise<Ending<T>> {
  const { clock, counters } = plan;
  let real: RealCall<T> | undefined;

  function call(target: string | undefined): RealCall<T> {
    real = new RealCall(plan, operation, options, target);
    return real;
  }

  /**
   * The operation of the simulated run. Its first attempt makes the real call. Each further attempt takes
   * equally long and returns the same result.
   */
  async function replay({ target }: Context): Promise<T> {
    if (!real) return call(target).result;
    const startedAt = clock.now();
    await real.ending;
    await sleep(clock, startedAt + real.tookMs - clock.now());
    return real.result;
  }

  const shadow = attemptRun(imagined, replay, {
    ...options,
    ambient: false,
    onWait: undefined,
    observed: true,
  });
  // `real` is still undefined if the policy would refuse the call or make it wait. In this case the real call
  // is made here.
  const { ending } = real ?? call(options.target ?? options.targets?.[0]);
  void shadow.then(({ story: { log, stop } }) => {
    const { would } = counters;
    for (const { verdict } of log) if (verdict.kind === 'retry') would.retry = (would.retry ?? 0) + 1;
    if (stop) would[stop] = (would[stop] ?? 0) + 1;
  });
  return ending;
}

/**
 * The one call of the operation that is really made. No guard (breaker, bulkhead, …) applies to it. It is
 * counted and reported like any other run.
 */
class RealCall<T> {
  readonly #work: Work;
  readonly #context: Observed;
  readonly result: Promise<T>;
  readonly ending: Promise<Ending<T>>;
  tookMs = 0;

  constructor(plan: Plan, operation: Operation<T>, options: RunOptions, target: string | undefined) {
    const { clock, counters, reporter } = plan;
    const limits = deadlineOf({ clock, patienceMs: Infinity }, options);
    this.#work = new Work(plan, options, limits.startedAt, Infinity);
    this.#context = new Observed(plan, limits, target);
    counters.operations++;
    counters.attempts++;
    this.#work.attempt = 1;
    reporter?.started(this.#work, limits.startedAt);
    const call = () => operation(this.#context);
    this.result = new Promise<T>((resolve) =>
      resolve(reporter?.isHeard() ? reporter.enter(this.#work, this.#context, call) : call()),
    );
    this.ending = this.result.then(
      (value) => this.#end({ ok: true, value }),
      (error: unknown) =>
        this.#end({ ok: false, error: this.#context.isCancelled ? limits.signal!.reason : error }),
    );
  }

  #end(outcome: Outcome): Ending<T> {
    const work = this.#work;
    const { plan, options } = work;
    const now = plan.clock.now();
    this.#context.end();
    this.tookMs = now - work.startedAt;
    work.result = outcome.ok ? outcome.value : outcome.error;
    const judged = judge(plan, options, outcome);
    if (judged.class === 'ok') work.finish(now, this.#context, judged);
    else {
      plan.reporter?.attempt(work, this.#context, now, judged, notRetried);
      work.giveUp(now, 'observed', work.result);
    }
    // The caller gets the returned value even if the policy would have classified it as a failure.
    return outcome.ok
      ? { ok: true, value: outcome.value as T, story: { ...work.story, stop: undefined } }
      : failure(outcome.error, work.story);
  }
}

const notRetried: Verdict = { kind: 'give_up', because: 'observed' };

class Observed extends Attempt implements AbortListener {
  readonly #signal: AbortSignal | undefined;
  readonly #target: string | undefined;

  constructor(plan: Plan, { endsAt, signal }: Deadline, target: string | undefined) {
    super(plan, 1, endsAt);
    this.#signal = signal;
    this.#target = target;
  }

  override get target(): string | undefined {
    return this.#target;
  }

  /** The signal that the caller passed to the run. In mode `observe` the policy itself aborts nothing. */
  override get signal(): AbortSignal {
    return this.#signal ?? super.signal;
  }

  /**
   * A call with an `AbortHandle` does not listen to the signal. So `handle.abort` is called when the caller
   * aborts.
   */
  override abortThrough(handle: AbortHandle): void {
    super.abortThrough(handle);
    if (this.#signal?.aborted) handle.abort(this.#signal.reason);
    else if (this.#signal) onAbort(this.#signal, this);
  }

  aborted(reason: unknown): void {
    this.controller?.abort(reason);
  }

  /**
   * Whether the caller aborted a call that uses an `AbortHandle`. The run then ends with the caller's reason,
   * not with the error of the call.
   */
  get isCancelled(): boolean {
    return this.controller !== undefined && this.#signal?.aborted === true;
  }

  end(): void {
    if (this.#signal) offAbort(this.#signal, this);
  }
}
