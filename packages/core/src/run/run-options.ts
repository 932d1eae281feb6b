import type { Classifier, OutcomeClass } from '../decide/outcome.ts';
import type { StopReason } from '../decide/verdict.ts';
import { callback, duration, type Field, flag, text, unknownField, word } from '../fields.ts';
import type { Duration } from '../policy/duration.ts';
import { readDuration } from '../policy/duration.ts';
import { OptionsError } from '../report/errors.ts';

/** What an operation receives for each attempt. */
export interface Context {
  /** Counted from 1. */
  readonly attempt: number;
  /** The target of this attempt. Undefined if the run names none. */
  readonly target: string | undefined;
  /** Aborts when the attempt times out, is cancelled or was slower than a second attempt. */
  readonly signal: AbortSignal;
  /** The ms until the caller stops waiting; Infinity without a limit. */
  readonly patienceLeft: number;
}

/** An asynchronous function that can be attempted more than once. */
export type Operation<T> = (context: Context) => PromiseLike<T> | T;

/** Options of one run. */
export interface RunOptions {
  /**
   * The time limit of the whole run, waits included. It can only shorten an inherited limit. Default: the `patience` of
   * the policy.
   */
  readonly patience?: Duration | undefined;
  /** When this signal aborts, the run ends and rejects with the reason of the signal. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /**
   * The host or shard that is called. Each target has its own breaker, budget, bulkhead and latency. Default: none;
   * runs without a target share one state.
   */
  readonly target?: string | undefined;
  /** Interchangeable targets. Each attempt is sent to one of them, and a retry preferably to another. Default: none. */
  readonly targets?: readonly string[] | undefined;
  /** False: a retry needs proof that the attempt was not processed. Default: `true`. */
  readonly idempotent?: boolean | undefined;
  /**
   * Called before each retry. It may return a reason that forbids the retry, such as `not_replayable`. Default: none.
   */
  readonly retryVeto?: (() => StopReason | undefined) | undefined;
  /**
   * Classifies the outcomes of this run before the policy does. Return undefined to leave an outcome to the policy. If
   * this function throws, nothing is retried. Default: none.
   */
  readonly classify?: Classifier | undefined;
  /**
   * Under load, calls with the lowest priority are refused first. Default: the priority of the run around this run, or
   * `default`.
   */
  readonly priority?: Priority | undefined;
  /** The key of this run's result in the cache. Default: none, and the result is not cached. */
  readonly cacheKey?: string | undefined;
  /**
   * True: runs inside this one inherit its time limit, priority and signal. Needs `holdfast/ambient`. Default: `false`.
   */
  readonly ambient?: boolean | undefined;
  /** Set only by mode `observe`, for the notices of this run. Default: `false`. */
  readonly observed?: boolean | undefined;
  /** Called before each wait between attempts, for example to inform a person. Default: none. */
  readonly onWait?: ((wait: Wait) => void) | undefined;
}

/** How important a run is. Under load, `sheddable` is refused first and `critical` last. */
export type Priority = 'critical' | 'default' | 'sheddable';

/** A wait that is about to begin, and how much patience is left, in ms. */
export interface Wait {
  /** The attempt that has just failed. */
  readonly attempt: number;
  readonly delayMs: number;
  readonly because: OutcomeClass;
  readonly patienceLeft: number;
}

/** Calls with a higher number are less important and are refused first. */
export const priorityRank: Readonly<Record<Priority, number>> = { critical: 0, default: 1, sheddable: 2 };

const name = /* @__PURE__ */ text();
const choice = /* @__PURE__ */ flag();
const fn = /* @__PURE__ */ callback();

const fields: Readonly<Record<keyof RunOptions, Field>> = {
  // Infinity is allowed here: a caller without a time limit passes it on.
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
  observed: choice,
  onWait: fn,
};

/**
 * Returns an error for the first option that is misspelt or invalid. A typo in `idempotent` could repeat an operation
 * that must not be repeated.
 */
export function runOptionsError(options: RunOptions): OptionsError | undefined {
  for (const key in options) {
    const value = options[key as keyof RunOptions] ?? undefined;
    if (value === undefined) continue;
    const field = fields[key as keyof RunOptions];
    // Every object inherits `constructor`, which has no `read`.
    if (field?.read?.(value, key) === undefined)
      return field?.kind ? new OptionsError(key, value, field.kind) : unknownField(fields, key, value);
  }
  return undefined;
}
