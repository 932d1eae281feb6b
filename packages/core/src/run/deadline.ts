import { readDuration } from '../policy/duration.ts';
import type { Plan } from '../policy/plan.ts';
import { offAbort, onAbort } from '../time/abort-listeners.ts';
import { Alarm, type Clock } from '../time/clock.ts';
import { ambientContext } from './ambient-context.ts';
import type { RunOptions } from './run-options.ts';

/** When a run must end, and the signal that cancels it. */
export interface Deadline {
  readonly startedAt: number;
  readonly endsAt: number;
  readonly signal: AbortSignal | undefined;
}

/** Returns the deadline of a run that starts now: the earlier of its own time limit and the inherited one. */
export function deadlineOf(
  { clock, patienceMs }: Pick<Plan, 'clock' | 'patienceMs'>,
  { patience, signal }: RunOptions,
): Deadline {
  const around = ambientContext();
  const startedAt = clock.now();
  const askedMs = readDuration(patience ?? patienceMs);
  const endsAt = Math.min(startedAt + askedMs, around?.patienceEndsAt ?? Infinity);
  return { startedAt, endsAt, signal: signal ?? around?.signal };
}

type EarlyStop = 'cancelled' | 'patience_too_short';

/**
 * Settles like `promise`. If the deadline passes or the signal aborts before, resolves with the result of
 * `instead`.
 */
export function withDeadline<T>(
  promise: Promise<T>,
  clock: Clock,
  { endsAt, signal }: Deadline,
  instead: (stop: EarlyStop, reason: unknown) => T,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const patience = new Patience((stop, reason) => {
      rest();
      resolve(instead(stop, reason));
    });
    const rest = () => {
      clock.clear(patience);
      if (signal) offAbort(signal, patience);
    };
    promise.then(resolve, reject).then(rest);
    if (signal?.aborted) return patience.aborted(signal.reason);
    if (signal) onAbort(signal, patience);
    if (endsAt < Infinity) clock.set(patience, endsAt);
  });
}

class Patience extends Alarm {
  readonly end: (stop: EarlyStop, reason: unknown) => void;

  constructor(end: (stop: EarlyStop, reason: unknown) => void) {
    super();
    this.end = end;
  }

  ring(): void {
    this.end('patience_too_short', undefined);
  }

  aborted(reason: unknown): void {
    this.end('cancelled', reason);
  }
}
