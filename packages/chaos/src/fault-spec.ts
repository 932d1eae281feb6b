import type { Duration } from 'holdfast';

/** A fault to inject. `kind` says what goes wrong. */
export type FaultSpec =
  | LatencyFaultSpec
  | SlowFaultSpec
  | HangFaultSpec
  | RefuseFaultSpec
  | ResetFaultSpec
  | TruncateFaultSpec
  | ErrorFaultSpec
  | StatusFaultSpec
  | DuplicateFaultSpec
  | ReorderFaultSpec;

/** When a fault strikes, and what. All kinds of faults have these fields. */
interface AnyFaultSpec<Kind extends string> {
  /** What goes wrong: `latency`, `slow`, `hang`, `refuse`, `reset`, `truncate`, `error`, `status`, … Required. */
  kind: Kind;
  /**
   * The share of the possible subjects (calls, events or exchanges) that the fault strikes, from 0 to 1. Default: `1`.
   */
  rate?: number | undefined;
  /** When the fault begins, measured from the time at which the faults were set. Default: `0`. */
  from?: Duration | undefined;
  /** When the fault ends, measured from the time at which the faults were set. Default: never. */
  until?: Duration | undefined;
  /**
   * Strikes only in the `down` part of each period. The first period begins at `from`, with its `up` part. Default: all
   * the time.
   */
  flap?: FlapSpec | undefined;
  /** Strikes only the first subjects, up to this number. Default: all. */
  first?: number | undefined;
  /** Strikes only each n-th subject: with 3, the third, the sixth, … Default: `1`. */
  every?: number | undefined;
  /** Strikes only subjects that match. Default: all. */
  match?: MatchSpec | undefined;
}

/** A fault that comes and goes: `up` without it, then `down` with it, and so on. */
export interface FlapSpec {
  /** How long the target works. Required. */
  up?: Duration | undefined;
  /** How long the fault strikes after `up`. Required. */
  down?: Duration | undefined;
}

/** Which calls a fault is for. All that is given must fit; of a list, one entry. */
export interface MatchSpec {
  /** The method must be one of these; `*` stands for any text. Default: all. */
  method?: string | readonly string[] | undefined;
  /** The path must be one of these; `*` stands for any text. Default: all. */
  path?: string | readonly string[] | undefined;
  /**
   * The host must be one of these, with its port unless it is the default port; `*` stands for any text. Default: all.
   */
  target?: string | readonly string[] | undefined;
}

/** Delays the request, the response or both. */
export interface LatencyFaultSpec extends AnyFaultSpec<'latency'> {
  /** The delay: a time, or a distribution from which a time is drawn. Required. */
  delay: DelaySpec;
  /**
   * `request`: waits before the work. `response`: waits after the work. `both`: waits before and after. Default:
   * `response`.
   */
  direction?: 'request' | 'response' | 'both' | undefined;
}

/** Limits the speed at which bytes pass. */
export interface SlowFaultSpec extends AnyFaultSpec<'slow'> {
  /** The speed, in bytes per second. Required. */
  bytesPerSecond: number;
  /** Which bytes are slow. Default: `response`. */
  direction?: 'request' | 'response' | 'both' | undefined;
}

/** Never answers. */
export interface HangFaultSpec extends AnyFaultSpec<'hang'> {
  /** `response`: hangs after the work was done. Default: `both`. */
  direction?: 'request' | 'response' | 'both' | undefined;
}

/** Refuses connections, as if no server listened. */
export interface RefuseFaultSpec extends AnyFaultSpec<'refuse'> {
  /** Whether open connections are reset as well. Default: `false`. */
  cut?: boolean | undefined;
}

/** The connection breaks. */
export interface ResetFaultSpec extends AnyFaultSpec<'reset'> {
  /** The connection breaks after this number of bytes. 0: before the first byte. Default: `0`. */
  afterBytes?: number | undefined;
  /** Whether the bytes of the request or of the response are counted. Default: `response`. */
  direction?: 'request' | 'response' | undefined;
}

/** The answer ends early, without an error. */
export interface TruncateFaultSpec extends AnyFaultSpec<'truncate'> {
  /** The answer ends after this number of bytes. Default: `0`. */
  afterBytes?: number | undefined;
}

/** Throws an error. */
export interface ErrorFaultSpec extends AnyFaultSpec<'error'> {
  /** The `code` of the error. Default: `ECONNRESET`. */
  code?: string | undefined;
  /** The message of the error. Default: a message that names the fault. */
  message?: string | undefined;
  /** `response`: throws after the work was done. Default: `request`. */
  direction?: 'request' | 'response' | undefined;
}

/** Answers with a status. */
export interface StatusFaultSpec extends AnyFaultSpec<'status'> {
  /** The status, from 200 to 599. Default: `503`. */
  status?: number | undefined;
  /** The `Retry-After` of the answer. Default: none. */
  retryAfter?: Duration | undefined;
  /** How `Retry-After` is written. Default: `seconds`. */
  retryAfterAs?: 'seconds' | 'date' | undefined;
  /** Further headers of the answer. Default: none. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** The body of the answer. Default: empty. */
  body?: string | undefined;
  /** `response`: answers after the server has done the work. Default: `request`. */
  direction?: 'request' | 'response' | undefined;
}

/** Calls the handler twice. */
export interface DuplicateFaultSpec extends AnyFaultSpec<'duplicate'> {
  /** Whether both calls run at the same time. Default: `false`, one after the other. */
  together?: boolean | undefined;
}

/** Holds an event back until later events have passed. */
export interface ReorderFaultSpec extends AnyFaultSpec<'reorder'> {
  /** How many later events pass first. Default: `1`. */
  by?: number | undefined;
  /** The longest wait for the later events. Default: `1s`. */
  within?: Duration | undefined;
}

/** A constant time, or a distribution from which a time is drawn for each use. */
export type DelaySpec =
  | Duration
  | UniformDelaySpec
  | ExponentialDelaySpec
  | LognormalDelaySpec
  | ParetoDelaySpec;

/** A random delay between `min` and `max`, each value equally likely. */
export interface UniformDelaySpec {
  /** All times from `min` to `max` are equally likely. Required. */
  distribution: 'uniform';
  /** The shortest time. Default: `0`. */
  min?: Duration | undefined;
  /** The longest time. Required. */
  max: Duration;
}

/** A random delay with many short and few long values. `cap` is the longest. */
export interface ExponentialDelaySpec {
  /** Many short times and few long times, like the gaps between independent arrivals. Required. */
  distribution: 'exponential';
  /** The mean. Required. */
  mean: Duration;
  /** A longer time is replaced by this time. Default: `1h`. */
  cap?: Duration | undefined;
}

/** A random delay that looks like the latency of a real service: half are below `median`, and a few are far above. */
export interface LognormalDelaySpec {
  /** The usual shape of latencies. Required. */
  distribution: 'lognormal';
  /** Half of the times are shorter than this. Required. */
  median: Duration;
  /** The spread, from 0 to 10. Default: `1`. */
  sigma?: number | undefined;
  /** A longer time is replaced by this time. Default: `1h`. */
  cap?: Duration | undefined;
}

/** A random delay with a heavy tail: the smaller `alpha` is, the more very long ones. */
export interface ParetoDelaySpec {
  /** A heavy tail: most times are short, and a few are very long. Required. */
  distribution: 'pareto';
  /** The shortest time. Required. */
  min: Duration;
  /** How quickly long times become rare. A lower number gives a heavier tail. Default: `1.5`. */
  alpha?: number | undefined;
  /** A longer time is replaced by this time. Default: `1h`. */
  cap?: Duration | undefined;
}
