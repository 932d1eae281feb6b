import type { Classifier, OutcomeClass } from '../decide/outcome.ts';
import type { StopReason } from '../decide/verdict.ts';
import { callback, duration, type Field, flag, text, unknownField, word } from '../fields.ts';
import type { Duration } from '../policy/duration.ts';
import { readDuration } from '../policy/duration.ts';
import type { Plan } from '../policy/plan.ts';
import { OptionsError } from '../report/errors.ts';

/** The argument that an operation gets at each attempt. */
export interface Context {
  /** The number of this attempt, counted from 1. */
  readonly attempt: number;
  /** The target that this attempt should call. Undefined if the run has no target. */
  readonly target: string | undefined;
  /** Aborts when the attempt times out, is cancelled, or is slower than a second attempt. */
  readonly signal: AbortSignal;
  /** Ms until the time limit of the run; Infinity without a limit. */
  readonly patienceLeft: number;
}

/** A function that a policy runs. It may be called more than once. */
export type Operation<T> = (context: Context) => PromiseLike<T> | T;

/** The options of one run. */
export interface RunOptions {
  /**
   * The time limit of the whole run, including waits. It cannot extend an inherited time limit. Default: the
   * `patience` of the policy.
   */
  readonly patience?: Duration | undefined;
  /** When this signal aborts, the run ends and rejects with the reason of the signal. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /**
   * The name of the host or shard that is called. Each target has its own breaker, budget, bulkhead and
   * latency. Default: none; runs without a target share one state.
   */
  readonly target?: string | undefined;
  /**
   * Names of hosts or shards that can all do the work. Each attempt is sent to one of them, and a retry to
   * another if possible. Default: none.
   */
  readonly targets?: readonly string[] | undefined;
  /** False: a retry is made only if the target has certainly not processed the attempt. Default: `true`. */
  readonly idempotent?: boolean | undefined;
  /**
   * Called before each retry. If it returns a stop reason, such as `not_replayable`, no retry is made.
   * Default: none.
   */
  readonly retryVeto?: (() => StopReason | undefined) | undefined;
  /**
   * Classifies the outcomes of this run before the policy does. If it returns undefined, the policy
   * classifies the outcome. If it throws, nothing is retried. Default: none.
   */
  readonly classify?: Classifier | undefined;
  /**
   * How important the run is. Under load, runs with the lowest priority are refused first. Default: the
   * priority of the run around this run, or `default`.
   */
  readonly priority?: Priority | undefined;
  /** The key under which the result of this run is cached. Default: none, and the result is not cached. */
  readonly cacheKey?: string | undefined;
  /**
   * True: the runs inside this run inherit its time limit, priority and signal. Needs `holdfast/ambient`.
   * Default: `false`.
   */
  readonly ambient?: boolean | undefined;
  /** Only mode `observe` sets this option. It marks the notices of this run. Default: `false`. */
  readonly observed?: boolean | undefined;
  /**
   * Called before each wait between attempts, for example to inform the user. If it throws, the run is
   * cancelled. Default: none.
   */
  readonly onWait?: ((wait: Wait) => void) | undefined;
}

/** How important a run is. Under load, `sheddable` is refused first and `critical` last. */
export type Priority = 'critical' | 'default' | 'sheddable';

/** Describes a wait that is about to begin. Times are in ms. */
export interface Wait {
  /** The number of the attempt that has just failed, counted from 1. */
  readonly attempt: number;
  /** Ms until the next attempt begins. */
  readonly delayMs: number;
  /** The class of the failed attempt: `transient`, or `throttled` if the target asked for fewer calls. */
  readonly because: OutcomeClass;
  /** Ms until the time limit of the run, counted from the start of the wait; Infinity without a limit. */
  readonly patienceLeft: number;
}

/** The rank of each priority. Under load, runs with the highest number are refused first. */
export const priorityRank: Readonly<Record<Priority, number>> = { critical: 0, default: 1, sheddable: 2 };

const name = /* @__PURE__ */ text();
const choice = /* @__PURE__ */ flag();
const fn = /* @__PURE__ */ callback();

/** Without `observed`, which only the code of Holdfast may set. */
export const runFields: Readonly<Record<Exclude<keyof RunOptions, 'observed'>, Field>> = {
  // `patience` may be Infinity: a caller that has no time limit itself passes Infinity on.
  patience: { ...duration(), read: (value) => (readDuration(value) >= 0 ? value : undefined) },
  signal: {
    kind: 'an AbortSignal',
    read: (value) => (typeof (value as AbortSignal).addEventListener === 'function' ? value : undefined),
  },
  target: name,
  targets: {
    kind: 'a list of texts',
    read: (value) => (Array.isArray(value) && value.every((each) => name.read(each, '')) ? value : undefined),
  },
  idempotent: choice,
  retryVeto: fn,
  classify: fn,
  priority: /* @__PURE__ */ word(undefined, ...(Object.keys(priorityRank) as Priority[])),
  cacheKey: name,
  ambient: choice,
  onWait: fn,
};

/**
 * Returns an error if `operation` is not a function, or else for the first option that is misspelt or invalid.
 * Without this check, a misspelt `idempotent: false` would have no effect, and the operation could be repeated.
 */
export function argumentsError(
  operation: unknown,
  options: RunOptions | undefined,
  plan: Plan,
): OptionsError | undefined {
  if (typeof operation !== 'function') {
    const got = operation instanceof Promise ? 'a promise' : operation;
    return new OptionsError('operation', got, 'a function that returns a promise, such as () => fetch(url)');
  }
  for (const key in options) {
    const value = options![key as keyof RunOptions] ?? undefined;
    if (value === undefined) continue;
    const field = runFields[key as keyof typeof runFields];
    // `runFields` inherits properties such as `constructor`, which have no `read`.
    if (field?.read?.(value, key) === undefined)
      return field?.kind
        ? new OptionsError(key, value, field.kind)
        : unknownField(runFields, key, value, '', [plan.policy!.settings, 'policy()']);
  }
  return undefined;
}
