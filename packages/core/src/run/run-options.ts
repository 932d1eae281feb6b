import type { Classifier, OutcomeClass } from '../decide/outcome.ts';
import type { StopReason } from '../decide/verdict.ts';
import { callback, duration, type Field, flag, text, word } from '../fields.ts';
import type { Duration } from '../policy/duration.ts';
import { readDuration } from '../policy/duration.ts';
import { OptionsError } from '../report/errors.ts';

/** What an operation receives for each attempt. */
export interface Context {
  /** Counted from 1. */
  readonly attempt: number;
  /** The target chosen for this attempt; undefined when the run named none. */
  readonly target: string | undefined;
  /**
   * Aborts when the attempt times out, is cancelled or was slower than its hedge. It is created when it is first read.
   */
  readonly signal: AbortSignal;
  /** The ms until the caller stops waiting; Infinity without a limit. */
  readonly patienceLeft: number;
}

/** An asynchronous function that can be attempted more than once. */
export type Operation<T> = (context: Context) => PromiseLike<T> | T;

/** Options of one run. */
export interface RunOptions {
  /**
   * The time limit for the whole run, waits included. It can shorten the limit of the ambient context, but not extend
   * it.
   */
  readonly patience?: Duration | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The name of the host or shard that is called. Each target has its own breaker, budget, bulkhead and latency. */
  readonly target?: string | undefined;
  /** Interchangeable targets: each attempt is sent to one of them, a retry preferably to another one. */
  readonly targets?: readonly string[] | undefined;
  /** False: an attempt is repeated only with proof that it was not processed. */
  readonly idempotent?: boolean | undefined;
  /**
   * Called before each retry. It returns the reason that forbids the retry, such as a body that can be read only once.
   */
  readonly retryVeto?: (() => StopReason | undefined) | undefined;
  /**
   * Classifies the outcomes of this run. Where it returns undefined, the policy's classifiers decide. If it throws,
   * nothing is retried.
   */
  readonly classify?: Classifier | undefined;
  /** Under load, calls with the lowest priority are refused first. */
  readonly priority?: Priority | undefined;
  /** The key of this run's result in the cache. Without a key the result is not cached. */
  readonly cacheKey?: string | undefined;
  /** True: runs inside this one inherit its patience, priority and signal. Needs `holdfast/ambient`. */
  readonly ambient?: boolean | undefined;
  /** Set only by mode `observe`: notices of this run say what the policy would have done. */
  readonly observed?: boolean | undefined;
  /** Called before each wait between attempts, for example to inform a person. */
  readonly onWait?: ((wait: Wait) => void) | undefined;
}

export type Priority = 'critical' | 'default' | 'sheddable';

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
  // Unlike in a policy document, Infinity is allowed: a caller without a time limit passes on its own patience, which
  // is Infinity.
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
 * Returns an error for the first option that is misspelt or invalid. Every run with options is checked: an unnoticed
 * typo in `idempotent` could repeat an operation that must not be repeated. The options are only checked, not converted
 * like a policy document, because converting would slow down each run.
 */
export function runOptionsError(options: RunOptions): OptionsError | undefined {
  for (const key in options) {
    const value = options[key as keyof RunOptions] ?? undefined;
    if (value === undefined) continue;
    const field = fields[key as keyof RunOptions];
    // `constructor` is found on every object, but is not a field and has no `read`.
    if (field?.read?.(value, key) === undefined)
      return new OptionsError(key, value, field?.kind ?? `one of ${Object.keys(fields).join(', ')}`);
  }
  return undefined;
}
