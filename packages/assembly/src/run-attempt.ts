import { type AmbientContext, type Clock, ExpiredError, Timer, withAmbient, withoutAmbient } from 'holdfast';
import { type Check, checked } from './check.ts';
import type { StepContext } from './step.ts';

export interface Attempt {
  readonly path: string;
  readonly fn: (context: StepContext) => unknown;
  readonly context: StepContext;
  /** When the customer's patience ends, on the scale of `Clock.now`. */
  readonly patienceEndsAt: number;
  readonly timeoutMs: number | undefined;
  readonly check: Check<never> | undefined;
  readonly clock: Clock;
  abort(reason: unknown): void;
}

/**
 * Calls the function of a step. Policies inside it inherit the remaining patience, the abort signal and the
 * key. The result of an attempt that timed out is ignored.
 */
export async function runAttempt(attempt: Attempt): Promise<unknown> {
  const { path, fn, context, patienceEndsAt, timeoutMs, check } = attempt;
  const ambient: AmbientContext = {
    ...{ patienceEndsAt, attempt: context.attempt, idempotencyKey: context.key },
    get signal() {
      return context.signal;
    },
  };
  const called = withoutAmbient(() => withAmbient(ambient, async () => fn(context)));
  const value = timeoutMs === undefined ? await called : await withTimeout(called, attempt, timeoutMs);
  return check === undefined ? value : checked(path, check as Check, value);
}

function withTimeout(
  called: Promise<unknown>,
  { clock, path, abort }: Attempt,
  ms: number,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const timer = new Timer(clock, () => {
      const error = new ExpiredError('HOLDFAST_ATTEMPT_TIMEOUT', `an attempt of step ${path}`, ms, undefined);
      abort(error);
      reject(error);
    });
    timer.setIn(ms);
    called.then(resolve, reject).finally(() => timer.clear());
  });
}
