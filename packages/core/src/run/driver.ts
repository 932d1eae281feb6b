import { messageOf } from '../classify/classifier.ts';
import type { Outcome } from '../decide/outcome.ts';
import type { Attempt } from './attempt.ts';
import { type Driver, STOP, type Step, WAIT } from './step.ts';
import type { Work } from './work.ts';

/**
 * Returns the next step after an attempt has ended. Undefined: the run does not wait for this attempt, for
 * example because it has timed out.
 */
export function stepAfter(work: Work, driver: Driver, attempt: Attempt, outcome: Outcome): Step | undefined {
  const { clock } = work.plan;
  const now = clock.now();
  if (work.isLate(now, attempt)) return undefined;
  clock.clear(driver);
  return notifyWait(
    work,
    outcome.ok ? work.succeeded(now, attempt, outcome.value) : work.settled(now, attempt, outcome),
  );
}

/** Returns the next step when the alarm of the driver (the code that performs the steps) rings. */
export function stepAt(work: Work, now: number): Step {
  const { backingOff } = work;
  const step = work.alarm(now);
  // `onWait` was called when this backoff began, so it is not called again.
  return backingOff ? step : notifyWait(work, step);
}

/**
 * Sets the timer of `driver` to the time at which `work` has its next step. If `work` only waits for an outcome,
 * no timer is set.
 */
export function schedule(work: Work, driver: Driver): void {
  if (work.wakeAt < Infinity) work.plan.clock.set(driver, work.wakeAt);
}

/** Calls the user's `onWait` before a wait between attempts. If it throws, the work is cancelled. */
export function notifyWait(work: Work, step: Step): Step {
  const { attempt, options, patienceEndsAt, previousDelayMs: delayMs } = work;
  if (step !== WAIT || !work.backingOff || !delayMs || !options?.onWait) return step;
  const now = work.plan.clock.now();
  const last = work.log.at(-1)!;
  try {
    options.onWait({
      attempt,
      delayMs: Math.round(delayMs),
      because: last.class,
      patienceLeft: Math.round(patienceEndsAt - now),
    });
    return work.stop ? STOP : WAIT;
  } catch (error) {
    (last as { note?: string }).note = `onWait threw ${messageOf(error)}`;
    return work.cancel(now, error);
  }
}
