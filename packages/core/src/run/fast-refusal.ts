import type { Plan } from '../policy/plan.ts';
import { knownMs, refusedQuickly } from '../report/errors.ts';
import { nextSerial, type RunEnding, recordEnding, type Story } from '../report/story.ts';
import type { Failure } from './promise-driver.ts';
import type { RunOptions } from './run-options.ts';

/**
 * Refuses a call at an open breaker without creating the state machine `Work`, because refusals must be
 * cheap. Returns undefined if the state machine is needed.
 */
export function refuseFast(plan: Plan, options: RunOptions | undefined): Refused | undefined {
  if (plan.waitsForBreaker || plan.reporter?.isHeard() || (options && needsMachineFor(options)))
    return undefined;
  const now = plan.clock.now();
  const { breaker, budget, name } = plan.targetOf!(options, now);
  if (!breaker || breaker.isClosed) return undefined;
  const admitsAt = breaker.reopensAt(now);
  if (admitsAt <= now) return undefined;
  const { counters } = plan;
  breaker.turnAway();
  budget?.firstTry(now);
  counters.operations++;
  counters.failed++;
  counters.stops.breaker_open = (counters.stops.breaker_open ?? 0) + 1;
  return new Refused(plan.name, name, admitsAt - now);
}

/** Whether the options of a run need the state machine `Work` from the start, instead of a faster path. */
export function needsMachineFor({ signal, patience, targets, ambient }: RunOptions): boolean {
  return (signal ?? patience ?? targets ?? ambient) !== undefined;
}

/**
 * The result of a refused run. To be cheap, it creates its error and its story (the record of the run) only
 * when they are read.
 */
export class Refused implements Failure<never>, RunEnding {
  readonly ok = false;
  readonly thrown = true;
  readonly value = undefined;
  readonly #policy: string | undefined;
  readonly #target: string | undefined;
  readonly #afterMs: number;
  readonly #serial: number;
  #error: unknown;

  constructor(policy: string | undefined, target: string | undefined, afterMs: number) {
    this.#policy = policy;
    this.#target = target;
    this.#afterMs = afterMs;
    this.#serial = nextSerial();
  }

  get error(): unknown {
    if (!this.#error) {
      this.#error = refusedQuickly('breaker_open', this.#target, this.#afterMs);
      recordEnding(this.#error, this);
    }
    return this.#error;
  }

  get serial(): number {
    return this.#serial;
  }

  get story(): Story {
    return {
      policy: this.#policy,
      attempts: 0,
      tookMs: 0,
      stop: 'breaker_open',
      log: [],
      inner: undefined,
      retryAfterMs: knownMs(this.#afterMs),
    };
  }
}
