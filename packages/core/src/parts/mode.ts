import { either, number, shape, word } from '../fields.ts';
import { definePart } from '../policy/part.ts';
import type { Plan } from '../policy/plan.ts';
import type { Story } from '../report/story.ts';
import { type Deadline, deadlineOf } from '../run/deadline.ts';
import { attemptRun, type Ending } from '../run/promise-driver.ts';
import type { Context, Operation, RunOptions } from '../run/run-options.ts';
import type { Clock } from '../time/clock.ts';
import { sleep } from '../time/timer.ts';
import { addLayer, failure } from './layer.ts';

/**
 * Whether a policy acts or only watches. `enforce`: it acts. `observe`: every operation is called exactly once,
 * breakers, budgets and the other parts learn from that call, and what they would have done is counted. `{ enforce: 0.1
 * }`: a tenth of the work is enforced and the rest observed.
 */
export const mode = definePart({
  key: 'mode',
  fields: {
    mode: either('enforce', word('enforce', 'enforce', 'observe'), shape({ enforce: number(1, 0, 1) })),
  },
  create({ mode: setting }, plan) {
    const share = typeof setting === 'object' ? setting.enforce : setting === 'observe' ? 0 : 1;
    if (share === 1) return;
    addLayer(plan, {
      order: 1,
      around: (operation, options, next) =>
        share > 0 && plan.random() < share ? next(options) : observe(plan, operation, options),
    });
  },
});

/**
 * Calls `operation` once, and runs the policy beside it with the result of that call (the shadow run). The result of a
 * retry cannot be known: it is assumed to be the same as the result of the real call, after the same time. So the
 * counts are exact for outages, and too pessimistic for short failures.
 */
async function observe<T>(plan: Plan, operation: Operation<T>, options: RunOptions): Promise<Ending<T>> {
  const { clock, counters, name } = plan;
  const limits = deadlineOf({ clock, patienceMs: Infinity }, options);
  let real: Promise<T> | undefined;
  let tookMs = 0;

  function call(target: string | undefined): Promise<T> {
    const context = new Observed(clock, limits, target);
    real = new Promise<T>((resolve) => resolve(operation(context))).finally(() => {
      tookMs = clock.now() - limits.startedAt;
    });
    return real;
  }

  /**
   * Makes the real call for the first attempt of the shadow run. Every other attempt repeats the result of that call,
   * after the same time.
   */
  async function replay({ target }: Context): Promise<T> {
    if (!real) return call(target);
    const startedAt = clock.now();
    await real.catch(() => {});
    await sleep(clock, startedAt + tookMs - clock.now());
    return real;
  }

  const shadow = attemptRun(plan, replay, { ...options, ambient: false, onWait: undefined, observed: true });
  // If the shadow run was refused or has to wait, it has not made the real call yet.
  const outcome = await (real ?? call(options.target ?? options.targets?.[0])).then(
    (value) => ({ ok: true as const, value }),
    (error: unknown) => ({ ok: false as const, error }),
  );
  void shadow.then(({ story: { log, stop } }) => {
    const { would } = counters;
    for (const { verdict } of log) if (verdict.kind === 'retry') would.retry = (would.retry ?? 0) + 1;
    if (stop) would[stop] = (would[stop] ?? 0) + 1;
  });
  const story: Story = { policy: name, attempts: 1, tookMs, stop: undefined, log: [], inner: undefined };
  return outcome.ok ? { ...outcome, story } : failure(outcome.error, { ...story, stop: 'observed' });
}

/** The context of an observed call: the caller's own deadline and signal, without the limits of the policy. */
class Observed implements Context {
  readonly attempt = 1;
  readonly target: string | undefined;
  readonly #clock: Clock;
  readonly #limits: Deadline;
  #signal: AbortSignal | undefined;

  constructor(clock: Clock, limits: Deadline, target: string | undefined) {
    this.#clock = clock;
    this.#limits = limits;
    this.#signal = limits.signal;
    this.target = target;
  }

  get signal(): AbortSignal {
    this.#signal ??= new AbortController().signal;
    return this.#signal;
  }

  get patienceLeft(): number {
    return Math.max(0, this.#limits.endsAt - this.#clock.now());
  }
}
