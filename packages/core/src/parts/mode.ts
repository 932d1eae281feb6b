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
 * How much a policy may do. `enforce` does it. `observe` changes nothing for anybody: every operation is called once,
 * while breakers, budgets and the rest learn from it and what they would have done is counted. `{ enforce: 0.1 }`
 * does it for a tenth of the work and observes the others.
 */
export const mode = definePart({
  key: 'mode',
  fields: {
    mode: either('enforce', word('enforce', 'enforce', 'observe'), shape({ enforce: number(1, 0, 1) })),
  },
  create({ mode: said }, plan) {
    const share = typeof said === 'object' ? said.enforce : said === 'observe' ? 0 : 1;
    if (share === 1) return;
    addLayer(plan, {
      order: 1,
      around: (operation, options, next) =>
        share > 0 && plan.random() < share ? next(options) : observe(plan, operation, options),
    });
  },
});

/**
 * Calls `operation` once, whatever the policy says, and lets the policy run beside it on what that call gives. What a
 * retry would have given cannot be known: it is taken to give the same again and to take as long, so that an outage is
 * told exactly and a flicker too darkly.
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

  /** The first attempt is the call itself; any other ends as that did, as long after its own start. */
  async function replay({ target }: Context): Promise<T> {
    if (!real) return call(target);
    const startedAt = clock.now();
    await real.catch(() => {});
    await sleep(clock, startedAt + tookMs - clock.now());
    return real;
  }

  const shadow = attemptRun(plan, replay, { ...options, ambient: false, onWait: undefined, observed: true });
  // Refused or made to wait, the shadow has not called yet.
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

/** The context of a call that is only observed: what its caller said, and nothing of the policy's. */
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
