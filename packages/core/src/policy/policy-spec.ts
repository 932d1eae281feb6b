import type { RetryOn } from '../classify/classifier.ts';
import type { Rate } from '../fields.ts';
import type { Fallback } from '../parts/fallback.ts';
import type { CustomBackoff } from '../parts/retry.ts';
import type { Duration } from './duration.ts';

/**
 * The document of a policy with all parts. Editors show the comments in this file, and `npm run options`
 * copies them to JSON Schema and the docs. `default-policy.ts` contains the defaults.
 */
export interface PolicySpec
  extends NameFields,
    RetryFields,
    TimeoutFields,
    BudgetFields,
    BreakerFields,
    BulkheadFields,
    LimiterFields,
    ThrottleFields,
    HedgeFields,
    ChoiceFields,
    CacheFields,
    FallbackFields,
    ModeFields {}

/** The fields that every policy has. */
export interface NameFields {
  /**
   * The name of this policy in lists, notices and stories. Use each name for only one policy in a process. Default:
   * none, and the policy is not listed.
   */
  name?: string | undefined;
}

/** The fields of the part `retry`. `Name` is the type of the pack names that `retryOn` accepts. */
export interface RetryFields<Name extends string = PackName> {
  /** The time limit of a run: all attempts and the waits between them. Default: `10s`. */
  patience?: Duration | 'unlimited' | undefined;
  /** The most attempts, including the first. `unlimited` needs an explicit `patience`. Default: `4`. */
  attempts?: number | 'unlimited' | undefined;
  /** The waits between attempts. `false`: no waits. A function returns the wait in ms. Default: on. */
  backoff?: boolean | BackoffSpec | CustomBackoff | undefined;
  /**
   * Which failures are retried in addition to those of the packs `network` and `http`. Give names of packs,
   * packs, or functions. A function gets an outcome, not an error:
   * `(outcome) => !outcome.ok && outcome.error instanceof PaymentBusy ? 'transient' : undefined`. Default:
   * none.
   */
  retryOn?: RetryOn<Name> | readonly RetryOn<Name>[] | undefined;
  /**
   * Like `retryOn`, but instead of the packs `network` and `http`. Only these failures, and errors marked
   * with `transient` or `retryAfter`, are retried. Default: not set.
   */
  retryOnly?: RetryOn<Name> | readonly RetryOn<Name>[] | undefined;
  /**
   * Error classes of your application, such as `OutOfStock`, that are never retried, whatever the packs say.
   * Not `TypeError`: `fetch` throws it for failures of the network. Default: none.
   */
  neverOn?: ErrorClass | readonly ErrorClass[] | undefined;
  /** Whether to follow a server that says when to try again, for example with Retry-After. Default: on. */
  respectServer?: boolean | RespectServerSpec | undefined;
}

/** The part of a policy document that `timeout` reads. */
export interface TimeoutFields {
  /**
   * The time limit of one attempt. `auto`: three times the measured p99.9, and at least six times the median.
   * With fewer than 1,000 measured answers, `auto` is an equal share of the patience, or more if that share
   * seems too short. `split`: an equal share of the remaining patience. `none`: all the remaining patience.
   * Default: `auto`.
   */
  attemptTimeout?: Duration | 'auto' | 'split' | 'none' | undefined;
}

/** The part of a policy document that `budget` reads. */
export interface BudgetFields {
  /**
   * Limits the number of retries in proportion to successful calls, so that retries do not overload a failing
   * target. Default: on.
   */
  budget?: boolean | BudgetSpec | undefined;
}

/** The part of a policy document that `breaker` reads. */
export interface BreakerFields {
  /**
   * Stops calling a target that is failing, and sends a few trial calls (probes) until the target succeeds
   * again. Default: on.
   */
  breaker?: boolean | BreakerSpec | undefined;
}

/** The part of a policy document that `bulkhead` reads. */
export interface BulkheadFields {
  /** Limits the attempts in flight at a target. Default: off. */
  bulkhead?: boolean | BulkheadSpec | undefined;
}

/** The part of a policy document that `limiter` reads. */
export interface LimiterFields {
  /** Limits the rate of attempts at a target. Default: off. */
  limiter?: boolean | LimiterSpec | undefined;
}

/** The part of a policy document that `throttle` reads. */
export interface ThrottleFields {
  /** Sends fewer requests to a target that refuses many of them. Default: off. */
  throttle?: boolean | ThrottleSpec | undefined;
}

/** The part of a policy document that `hedge` reads. */
export interface HedgeFields {
  /** Starts a second attempt when the first is slow, and uses the answer that arrives first. Default: off. */
  hedge?: boolean | HedgeSpec | undefined;
}

/** The part of a policy document that `choice` reads. */
export interface ChoiceFields {
  /**
   * Chooses one of the `targets` of a run for each attempt. A target that fails more than the others is
   * avoided for a while. Default: on.
   */
  choice?: boolean | ChoiceSpec | undefined;
}

/** The part of a policy document that `cache` reads. */
export interface CacheFields {
  /**
   * Caches results by the `cacheKey` of a run. Concurrent runs with the same key share one call and its
   * result. Default: off.
   */
  cache?: boolean | CacheSpec | undefined;
}

/** The part of a policy document that `fallback` reads. */
export interface FallbackFields {
  /** Returns another result when the work has failed. Default: off. */
  fallback?: boolean | FallbackSpec | undefined;
}

/** The part of a policy document that `mode` reads. */
export interface ModeFields {
  /**
   * `enforce`: the policy acts. `observe`: each operation is called once, and the policy only counts what it
   * would have done. Default: `enforce`.
   */
  mode?: 'enforce' | 'observe' | ModeSpec | undefined;
}

/** The names of the packs (named classifiers) that `policy()` contains. */
export type PackName = 'network' | 'http' | 'sql' | 'grpc' | 'aws' | 'kafka' | 'any';

/** A class of errors, such as `RangeError`. */
export type ErrorClass = abstract new (...args: never[]) => unknown;

/** How long to wait before the next attempt. */
export interface BackoffSpec {
  /** How the waits grow from one attempt to the next. Default: `exponential`. */
  strategy?: 'constant' | 'linear' | 'exponential' | 'fibonacci' | 'polynomial' | undefined;
  /** The first wait, before jitter. After a throttled attempt it is at least 1 s. Default: `100ms`. */
  base?: Duration | undefined;
  /**
   * For `exponential`: each wait is this many times the previous one. For `polynomial`: the exponent.
   * Default: `2`.
   */
  factor?: number | undefined;
  /** The longest wait, unless a server asks for a longer one. Default: `30s`. */
  cap?: Duration | undefined;
  /**
   * Which part of a wait is random. `full`: the whole wait. `equal`: half of the wait. `decorrelated`: a
   * random wait between the base and three times the previous wait. A number from 0 to 1: this share of the
   * wait. Default: `full`.
   */
  jitter?: 'none' | 'full' | 'equal' | 'decorrelated' | number | JitterSpec | undefined;
}

/** Jitter as a fixed time: each wait becomes longer or shorter by a random time. */
export interface JitterSpec {
  /** Each wait becomes longer or shorter by a random time of up to this duration. Default: `100ms`. */
  plusMinus?: Duration | undefined;
}

/** The longest wait that a server may ask for. */
export interface RespectServerSpec {
  /** If a server asks for a longer wait than this, the work ends without a retry. Default: `5m`. */
  cap?: Duration | undefined;
}

/** How many retries all runs together may make. */
export interface BudgetSpec {
  /**
   * How many tokens each success adds to the budget. Each retry that fails takes one token. So 0.1 allows one
   * failed retry for ten successes. Default: `0.1`.
   */
  ratio?: number | undefined;
  /**
   * The budget holds at most `ratio` tokens for each call in this time, and always at least one token.
   * Successful retries raise this minimum. Default: `10s`.
   */
  window?: Duration | undefined;
}

/** When the breaker stops calls to a failing target, and when it admits calls again. */
export interface BreakerSpec {
  /**
   * Which calls are counted. A duration: the calls of that time. `{ calls: 100 }`: the last 100 calls.
   * Default: `30s`.
   */
  window?: Duration | BreakerWindowSpec | undefined;
  /**
   * With fewer counted calls than this, the ratios are ignored. If `window` is fewer calls than this, a full
   * window is enough. Default: `20`.
   */
  minimum?: number | undefined;
  /** If this share of the counted calls failed (0 to 1), the breaker opens. Default: `0.5`. */
  failureRatio?: number | undefined;
  /**
   * The breaker opens after this many failures in a row, whatever the ratio. With heavy traffic, it takes
   * more. 0: failures in a row do not open it. Default: `5`.
   */
  consecutive?: number | undefined;
  /** Whether slow calls open the breaker, as failed calls do. Default: on. */
  slow?: boolean | BreakerSlowSpec | undefined;
  /**
   * The shortest and the longest time that the breaker stays open. It stays open longer the longer the target
   * has been failing. Jitter shortens the time by at most half. Default: `1s`, `30s`.
   */
  openFor?: Duration | readonly Duration[] | undefined;
  /**
   * While half-open: the most trial calls (probes) in flight. The same number must succeed in a row to close
   * the breaker. Default: `3`.
   */
  probes?: number | undefined;
  /**
   * What a call does while the breaker is open. `stop`: it is refused immediately. `wait`: it waits until the
   * breaker admits calls again, if patience allows. With unlimited attempts, `wait` is the default. Default:
   * `stop`.
   */
  whenOpen?: 'stop' | 'wait' | undefined;
}

/** Counts a fixed number of calls instead of the calls of a time. */
export interface BreakerWindowSpec {
  /** The breaker counts this many of the latest calls, however old they are. Default: `100`. */
  calls?: number | undefined;
}

/** Which calls are slow, and what share of slow calls opens the breaker. */
export interface BreakerSlowSpec {
  /**
   * A call that takes longer than this is slow. `auto`: 10 times the median duration at the target, and at
   * least one second. `auto` needs measured durations, so `attemptTimeout` must be `auto` or `hedge` must be
   * on. Default: `auto`.
   */
  over?: Duration | 'auto' | undefined;
  /** If this share of the counted calls was slow (0 to 1), the breaker opens. Default: `0.8`. */
  ratio?: number | undefined;
}

/** How many attempts may be in flight at a target, and how many may wait. */
export interface BulkheadSpec {
  /** The most attempts in flight. Default: `100`. */
  concurrent?: number | undefined;
  /**
   * The most attempts that wait in the queue, ordered by priority. Further attempts are refused. Default:
   * `50`.
   */
  queue?: number | undefined;
}

/** How many attempts may start per second, minute or hour, and how long an attempt may wait. */
export interface LimiterSpec {
  /** The highest rate of attempts, per second, minute or hour. Default: `50/s`. */
  rate?: Rate | undefined;
  /** How many attempts may start at once after a time without attempts. Default: `100`. */
  burst?: number | undefined;
  /**
   * How long an attempt above the rate may wait, within patience. 0: it is refused immediately. Default:
   * `0ms`.
   */
  wait?: Duration | 'unlimited' | undefined;
}

/** How many requests are sent to a target that refuses many of them. */
export interface ThrottleSpec {
  /**
   * Sends about `k` requests for each request that the target accepts, and refuses the others. Default: `2`.
   */
  k?: number | undefined;
  /** Only the requests of this last period are counted. Default: `30s`. */
  window?: Duration | undefined;
}

/** When a hedge (a second attempt while the first is in flight) is sent, and how much load hedges may add. */
export interface HedgeSpec {
  /**
   * How many hedges (second attempts) may be sent, as a share of the calls, from 0 to 1. Without `percentile`
   * and `after` it also sets the delay: 0.02 sends the hedge at p98. Default: `0.02`.
   */
  extraLoad?: number | undefined;
  /**
   * Sends the hedge when the first attempt has taken longer than this percentile (0 to 1) of all attempts.
   * Default: 1 − `extraLoad`.
   */
  percentile?: number | undefined;
  /** Sends the hedge when the first attempt has taken this long. Default: at the percentile. */
  after?: Duration | undefined;
}

/** When a target is ejected (not chosen because it fails), and for how long. */
export interface ChoiceSpec {
  /**
   * After this many failures in a row, a target is ejected (not chosen), unless most other targets fail too.
   * Default: `5`.
   */
  consecutive?: number | undefined;
  /** How long the first ejection lasts, and how long an ejection can last at most. Default: `10s`, `5m`. */
  ejectFor?: Duration | readonly Duration[] | undefined;
}

/** How long cached results are used, and how long an old result may replace a failure. */
export interface CacheSpec {
  /** A result is used instead of a call until it is this old. Default: `1s`. */
  fresh?: Duration | undefined;
  /** For this time after `fresh`, an old result is returned if the call fails. Default: `0ms`. */
  staleIfError?: Duration | undefined;
  /** The most results in the cache. The least recently used result is removed first. Default: `1000`. */
  entriesMax?: number | undefined;
}

/** The result that replaces a failure, and the time reserved for computing it. */
export interface FallbackSpec {
  /**
   * The result instead of the failure: a value, a function that gets the failure, or a list of these. In a
   * list, the first item that does not throw gives the result. Required.
   */
  to?: Fallback;
  /** How much of the patience is reserved for the functions in `to`. Default: `0ms`. */
  reserve?: Duration | undefined;
}

/** The share of the runs on which the policy acts. The policy only observes the other runs. */
export interface ModeSpec {
  /**
   * The share of the runs, from 0 to 1, on which the policy acts. It only observes the others. Default: `1`.
   */
  enforce?: number | undefined;
}
