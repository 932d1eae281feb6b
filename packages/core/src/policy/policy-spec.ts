import type { RetryOn } from '../classify/classifier.ts';
import type { Rate } from '../fields.ts';
import type { Fallback } from '../parts/fallback.ts';
import type { CustomBackoff } from '../parts/retry.ts';
import type { Duration } from './duration.ts';

/**
 * The document of a policy with all parts. The comments here are the source of every text about an option: editors show
 * them, and JSON Schema and the docs are made of them (`npm run options`). Defaults come from the tables in `parts/`.
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

/** The fields of every policy. */
export interface NameFields {
  /**
   * The name of this policy in lists, notices and stories. Use each name for only one policy in a process. Default:
   * none, and the policy is not listed.
   */
  name?: string | undefined;
}

/** The fields of the part `retry`. `Name` is a name of a pack. */
export interface RetryFields<Name extends string = PackName> {
  /** The time limit for everything, waits and retries included. Default: `10s`. */
  patience?: Duration | 'unlimited' | undefined;
  /** The most attempts, the first included. `unlimited` needs an explicit `patience`. Default: `4`. */
  attempts?: number | 'unlimited' | undefined;
  /** The waits between attempts. `false`: no waits. A function returns the ms itself. Default: on. */
  backoff?: boolean | BackoffSpec | CustomBackoff | undefined;
  /**
   * Which failures are worth another attempt besides those of `network` and `http`: names of packs, packs, or functions
   * that classify an outcome. Default: none.
   */
  retryOn?: RetryOn<Name> | readonly RetryOn<Name>[] | undefined;
  /**
   * Like `retryOn`, but replaces `network` and `http`: only these failures and errors with a mark are tried again.
   * Default: not set.
   */
  retryOnly?: RetryOn<Name> | readonly RetryOn<Name>[] | undefined;
  /** Classes of errors that are never retried, whatever the packs say. Default: none. */
  neverOn?: ErrorClass | readonly ErrorClass[] | undefined;
  /** Whether hints of a server on when to try again are followed. Default: on. */
  respectServer?: boolean | RespectServerSpec | undefined;
}

/** The part of a policy document that `timeout` reads. */
export interface TimeoutFields {
  /**
   * How long one attempt may take. `auto`: three times the measured p99.9, and at least six times the median. With
   * fewer than 1,000 measured answers, `auto` is an equal share of the patience, or more if that share seems too short.
   * `split`: an equal share of the patience that is left. `none`: all the patience that is left. Default: `auto`.
   */
  attemptTimeout?: Duration | 'auto' | 'split' | 'none' | undefined;
}

/** The part of a policy document that `budget` reads. */
export interface BudgetFields {
  /** Limits the retries that a caller adds to its own traffic. Default: on. */
  budget?: boolean | BudgetSpec | undefined;
}

/** The part of a policy document that `breaker` reads. */
export interface BreakerFields {
  /** Stops calling a target that is failing, and probes it until it succeeds again. Default: on. */
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
  /** Sends fewer requests to a target that accepts fewer. Default: off. */
  throttle?: boolean | ThrottleSpec | undefined;
}

/** The part of a policy document that `hedge` reads. */
export interface HedgeFields {
  /** Starts a second attempt when the first is slow, and takes the first answer. Default: off. */
  hedge?: boolean | HedgeSpec | undefined;
}

/** The part of a policy document that `choice` reads. */
export interface ChoiceFields {
  /** Chooses among the `targets` of a run, and ejects outliers for a while. Default: on. */
  choice?: boolean | ChoiceSpec | undefined;
}

/** The part of a policy document that `cache` reads. */
export interface CacheFields {
  /**
   * Caches results by the `cacheKey` of a run. Concurrent calls with one key wait for one execution and get its result. Default: off.
   */
  cache?: boolean | CacheSpec | undefined;
}

/** The part of a policy document that `fallback` reads. */
export interface FallbackFields {
  /** Gives another result when the work has failed. Default: off. */
  fallback?: boolean | FallbackSpec | undefined;
}

/** The part of a policy document that `mode` reads. */
export interface ModeFields {
  /** `enforce` acts. `observe` calls once, and only counts what it would have done. Default: `enforce`. */
  mode?: 'enforce' | 'observe' | ModeSpec | undefined;
}

/** The packs of `policy()`. */
export type PackName = 'network' | 'http' | 'sql' | 'grpc' | 'aws' | 'kafka' | 'any';

/** A class, such as `TypeError`. */
export type ErrorClass = abstract new (...args: never[]) => unknown;

/** How long to wait before the next attempt. */
export interface BackoffSpec {
  /** How waits grow from one attempt to the next. Default: `exponential`. */
  strategy?: 'constant' | 'linear' | 'exponential' | 'fibonacci' | 'polynomial' | undefined;
  /** The first wait, before jitter. After a throttled attempt it is at least 1 s. Default: `100ms`. */
  base?: Duration | undefined;
  /** The growth factor of `exponential` from wait to wait, or the exponent of `polynomial`. Default: `2`. */
  factor?: number | undefined;
  /** The longest wait, except where a server asks for more time. Default: `30s`. */
  cap?: Duration | undefined;
  /**
   * The random part of a wait. `full`: the whole wait. `equal`: half of the wait. `decorrelated`: a random wait between
   * the base and three times the previous wait. A number from 0 to 1: this share of the wait. Default: `full`.
   */
  jitter?: 'none' | 'full' | 'equal' | 'decorrelated' | number | JitterSpec | undefined;
}

/** A random time that is added to or taken from each wait. */
export interface JitterSpec {
  /** Each wait is moved by up to this time in either direction. Default: `100ms`. */
  plusMinus?: Duration | undefined;
}

/** The longest hint of a server that is followed. */
export interface RespectServerSpec {
  /** If a server asks for a longer wait than this, the work ends. Default: `5m`. */
  cap?: Duration | undefined;
}

/** How many retries all calls together may make. */
export interface BudgetSpec {
  /**
   * How many tokens a success adds. A retry that fails takes one token, so 0.1 allows one failing retry for ten
   * successes. Default: `0.1`.
   */
  ratio?: number | undefined;
  /**
   * The bucket holds at most `ratio` × the calls made in this time. It always has room for one token, and for more
   * while retries succeed. Default: `10s`.
   */
  window?: Duration | undefined;
}

/** When calls to a failing target stop, and when they begin again. */
export interface BreakerSpec {
  /** Which calls are counted: the calls of this time, or a number of calls. Default: `30s`. */
  window?: Duration | BreakerWindowSpec | undefined;
  /** With fewer calls than this in the window, no ratio opens the breaker. Default: `20`. */
  minimum?: number | undefined;
  /** The share of failed calls, from 0 to 1, that opens the breaker. Default: `0.5`. */
  failureRatio?: number | undefined;
  /**
   * This many failures in a row open the breaker, whatever the ratio. Heavy traffic needs more. 0: never. Default: `5`.
   */
  consecutive?: number | undefined;
  /** Whether slow calls open the breaker as well. Default: on. */
  slow?: boolean | BreakerSlowSpec | undefined;
  /**
   * The shortest and the longest time that the breaker stays open. A longer outage means a longer time. Jitter shortens
   * the time by at most half. Default: `1s`, `30s`.
   */
  openFor?: Duration | readonly Duration[] | undefined;
  /** The most probes in flight, and the successes in a row that close the breaker. Default: `3`. */
  probes?: number | undefined;
  /**
   * `stop` refuses calls immediately. `wait` waits until the breaker admits calls again, if patience allows. With
   * unlimited attempts `wait` is the default. Default: `stop`.
   */
  whenOpen?: 'stop' | 'wait' | undefined;
}

/** A window of a number of calls instead of a time. */
export interface BreakerWindowSpec {
  /** Counts this number of calls, however old they are. Default: `100`. */
  calls?: number | undefined;
}

/** Which answers are too slow, and what share of them opens the breaker. */
export interface BreakerSlowSpec {
  /**
   * A call that takes longer than this is slow. `auto`: 10 times the median of the target, and more than a second.
   * `auto` needs an `attemptTimeout` that learns. Default: `auto`.
   */
  over?: Duration | 'auto' | undefined;
  /** The share of slow calls, from 0 to 1, that opens the breaker. Default: `0.8`. */
  ratio?: number | undefined;
}

/** How many calls run at the same time, and how many wait for a place. */
export interface BulkheadSpec {
  /** The most attempts in flight. Default: `100`. */
  concurrent?: number | undefined;
  /** The most attempts that wait for a permit, ordered by priority. Further attempts are refused. Default: `50`. */
  queue?: number | undefined;
}

/** How many calls start in a time, and how long one may wait for its turn. */
export interface LimiterSpec {
  /** Attempts per second, minute or hour. Default: `50/s`. */
  rate?: Rate | undefined;
  /** Attempts that may pass together after a time without attempts. Default: `100`. */
  burst?: number | undefined;
  /**
   * The longest wait of an attempt for its turn, within patience. 0: no wait, the attempt is refused. Default: `0ms`.
   */
  wait?: Duration | 'unlimited' | undefined;
}

/** When calls are refused here because the target refuses most of them. */
export interface ThrottleSpec {
  /** Sends at most `k` requests for each request that the target accepts. Default: `2`. */
  k?: number | undefined;
  /** How far back requests are counted. Default: `30s`. */
  window?: Duration | undefined;
}

/** When a second attempt starts beside a slow one, and how much load that may add. */
export interface HedgeSpec {
  /**
   * The largest share of extra calls, from 0 to 1. Without `percentile` and `after` it also sets the delay: 0.02 hedges
   * at p98. Default: `0.02`.
   */
  extraLoad?: number | undefined;
  /** Sends the hedge at this percentile (0 to 1) of the durations of attempts. Default: 1 − `extraLoad`. */
  percentile?: number | undefined;
  /** Sends the hedge after this time. Default: at the percentile. */
  after?: Duration | undefined;
}

/** When a target that fails is avoided, and for how long. */
export interface ChoiceSpec {
  /** Failures in a row after which a target is ejected, unless most of the others are failing too. Default: `5`. */
  consecutive?: number | undefined;
  /** The duration of the first ejection, and of the longest ejection. Default: `10s`, `5m`. */
  ejectFor?: Duration | readonly Duration[] | undefined;
}

/** How long results are used again, also old ones when a call fails. */
export interface CacheSpec {
  /** For this time, the cached result is used instead of a call. Default: `1s`. */
  fresh?: Duration | undefined;
  /** For this time after `fresh`, a result is served instead of a failure. Default: `0ms`. */
  staleIfError?: Duration | undefined;
  /** The most results that are kept; the least recently used is dropped first. Default: `1000`. */
  entriesMax?: number | undefined;
}

/** What stands in for a failed call, and how much of the patience is kept for it. */
export interface FallbackSpec {
  /**
   * A value, a function of the failure, or a list of these: the first item that does not throw gives the result.
   * Required.
   */
  to?: Fallback;
  /** The part of the patience that is reserved for the functions of the chain. Default: `0ms`. */
  reserve?: Duration | undefined;
}

/** For what share of the runs the policy is in force; the others are only counted. */
export interface ModeSpec {
  /** The share of the work, from 0 to 1, that is enforced; the rest is observed. Default: `1`. */
  enforce?: number | undefined;
}
