import type { Outcome } from '../decide/outcome.ts';
import type { Attempt } from './attempt.ts';
import { type Driver, STOP, type Step, WAIT } from './step.ts';
import type { Work } from './work.ts';

/** The step after an attempt has ended. Undefined: the work does not wait for it any more. */
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

/** The step when the driver's alarm rings. */
export function stepAt(work: Work, now: number): Step {
  const { backingOff } = work;
  const step = work.alarm(now);
  // `onWait` was called when this backoff began.
  return backingOff ? step : notifyWait(work, step);
}

/** Sets the driver's alarm to when something happens by itself. */
export function schedule(work: Work, driver: Driver): void {
  if (work.wakeAt < Infinity) work.plan.clock.set(driver, work.wakeAt);
}

/** Calls `onWait` before a backoff; a retry without a delay is none. If it throws, the work is cancelled. */
export function notifyWait(work: Work, step: Step): Step {
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
