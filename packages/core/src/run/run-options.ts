import type { Classifier, OutcomeClass } from '../decide/outcome.ts';
import type { StopReason } from '../decide/verdict.ts';
import { callback, duration, type Field, flag, text, word } from '../fields.ts';
import type { Duration } from '../policy/duration.ts';
import { readDuration } from '../policy/duration.ts';
import { OptionsError } from '../report/errors.ts';

/** What an operation gets for each attempt. */
export interface Context {
  /** Counted from 1. */
  readonly attempt: number;
  /** The target chosen for this attempt; undefined when the run named none. */
  readonly target: string | undefined;
  /** Aborts when the attempt is over: timed out, cancelled, or slower than its hedge. Made when first read. */
  readonly signal: AbortSignal;
  /** Ms the customer will still wait; Infinity without a limit. */
  readonly patienceLeft: number;
}

/** An asynchronous function that can be attempted more than once. */
export type Operation<T> = (context: Context) => PromiseLike<T> | T;

/** What a caller may say about one run. */
export interface RunOptions {
  /** At most this long for everything, waits included. It can shorten what the ambientContext allow, never extend it. */
  readonly patience?: Duration | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Whose state (breaker, budget, bulkhead, latency) this call belongs to: a shard, a host. */
  readonly target?: string | undefined;
  /** Interchangeable targets: each attempt goes to one of them, a retry preferably to another. */
  readonly targets?: readonly string[] | undefined;
  /** False: repeat only what was provably not processed. */
  readonly idempotent?: boolean | undefined;
  /** Asked before each retry: the reason that forbids it, if there is one, such as a body that can be read only once. */
  readonly retryVeto?: (() => StopReason | undefined) | undefined;
  /** Judges every outcome of this run before the policy's classifiers, which judge what it declines. If it throws, nothing is retried. */
  readonly classify?: Classifier | undefined;
  /** Under load the least important waits and is refused first. */
  readonly priority?: Priority | undefined;
  /** The key of this call's result in the cache; without one it is not cached. */
  readonly cacheKey?: string | undefined;
  /** Carry patience and ownership to the runs inside this one. Needs `holdfast/ambient`. */
  readonly ambient?: boolean | undefined;
  /** Set by the mode `observe` alone: notices of this run say what would have been done. */
  readonly observed?: boolean | undefined;
  /** Called before each backoff, so that a person can be told. */
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

/** The lower the number, the more important; the highest is refused first. */
export const priorityRank: Readonly<Record<Priority, number>> = { critical: 0, default: 1, sheddable: 2 };

const name = /* @__PURE__ */ text();
const choice = /* @__PURE__ */ flag();
const fn = /* @__PURE__ */ callback();

const fields: Readonly<Record<keyof RunOptions, Field>> = {
  // Unlike in a document it may be Infinity: the patience that is left where nothing limits the work around it.
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
 * The first option of a run that is misspelt or invalid. Every run with options is checked: a typo that goes unnoticed would
 * repeat what must not be repeated, or make a customer wait. No settings are made from them, as from a document, because each
 * run would pay for that.
 */
export function runOptionsError(options: RunOptions): OptionsError | undefined {
  for (const key in options) {
    const value = options[key as keyof RunOptions] ?? undefined;
    if (value === undefined) continue;
    const field = fields[key as keyof RunOptions];
    // Every object has a `constructor`, which is no field and has no `read`.
    if (field?.read?.(value, key) === undefined)
      return new OptionsError(key, value, field?.kind ?? `one of ${Object.keys(fields).join(', ')}`);
  }
  return undefined;
}
