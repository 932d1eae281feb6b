import type { Duration } from 'holdfast';

/** A fault to inject. Its `kind` says what goes wrong. */
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

/**
 * Says when a fault is active and which calls, events or exchanges it hits. All kinds of faults have these
 * fields.
 */
interface AnyFaultSpec<Kind extends string> {
  /** What goes wrong: `latency`, `slow`, `hang`, `refuse`, `reset`, `truncate`, `error`, `status`, … Required. */
  kind: Kind;
  /**
   * The share of the subjects (calls, events or exchanges) that the fault hits, from 0 to 1. Default: `1`.
   */
  rate?: number | undefined;
  /** When the fault begins, counted from the time at which the faults were set. Default: `0`. */
  from?: Duration | undefined;
  /** When the fault ends, counted from the time at which the faults were set. Default: never. */
  until?: Duration | undefined;
  /**
   * Makes the fault come and go. It is active only in the `down` part of each period. The first period begins
   * at `from`, with its `up` part. Default: all the time.
   */
  flap?: FlapSpec | undefined;
  /** The fault hits only the first subjects (calls, events or exchanges), up to this number. Default: all. */
  first?: number | undefined;
  /**
   * The fault hits only every n-th subject (call, event or exchange): with 3, the third, the sixth and so on.
   * Default: `1`.
   */
  every?: number | undefined;
  /** The fault hits only subjects (calls, events or exchanges) that match. Default: all. */
  match?: MatchSpec | undefined;
}

/** A fault that comes and goes: it is inactive for `up`, then active for `down`, then inactive again. */
export interface FlapSpec {
  /** How long the target works before the fault becomes active. Required. */
  up?: Duration | undefined;
  /** How long the fault is active after `up`. Required. */
  down?: Duration | undefined;
}

/**
 * Which calls a fault hits. A call must match all given fields. If a field is a list, one entry must match.
 */
export interface MatchSpec {
  /** The method of the call must match one of these; `*` stands for any text. Default: all. */
  method?: string | readonly string[] | undefined;
  /** The path of the call must match one of these; `*` stands for any text. Default: all. */
  path?: string | readonly string[] | undefined;
  /**
   * The host of the call must match one of these; `*` stands for any text. A port that is not the default
   * port is part of the host. Default: all.
   */
  target?: string | readonly string[] | undefined;
}

/** Delays the request, the response or both. */
export interface LatencyFaultSpec extends AnyFaultSpec<'latency'> {
  /** The delay: a constant time, or a distribution of random times. Required. */
  delay: DelaySpec;
  /**
   * `request`: the delay is before the work. `response`: after the work. `both`: before and after. Default:
   * `response`.
   */
  direction?: 'request' | 'response' | 'both' | undefined;
}

/** Limits the speed at which bytes are sent. */
export interface SlowFaultSpec extends AnyFaultSpec<'slow'> {
  /** The speed, in bytes per second. Required. */
  bytesPerSecond: number;
  /** Whether the bytes of the request, of the response or of both are slow. Default: `response`. */
  direction?: 'request' | 'response' | 'both' | undefined;
}

/** The call never gets an answer. */
export interface HangFaultSpec extends AnyFaultSpec<'hang'> {
  /**
   * `response`: the work is done, but its answer never arrives. `request` or `both`: the work is not done.
   * Default: `both`.
   */
  direction?: 'request' | 'response' | 'both' | undefined;
}

/** Refuses new connections, as if no server listened. */
export interface RefuseFaultSpec extends AnyFaultSpec<'refuse'> {
  /** Whether open connections are also reset. Default: `false`. */
  cut?: boolean | undefined;
}

/** The connection breaks with a TCP reset. */
export interface ResetFaultSpec extends AnyFaultSpec<'reset'> {
  /** After how many bytes the connection breaks. 0: before the first byte. Default: `0`. */
  afterBytes?: number | undefined;
  /** Whether `afterBytes` counts the bytes of the request or of the response. Default: `response`. */
  direction?: 'request' | 'response' | undefined;
}

/** The answer ends early: the connection is closed without a reset. */
export interface TruncateFaultSpec extends AnyFaultSpec<'truncate'> {
  /** After how many bytes the answer ends. Default: `0`. */
  afterBytes?: number | undefined;
}

/** The call fails with an error. */
export interface ErrorFaultSpec extends AnyFaultSpec<'error'> {
  /** The `code` of the error. Default: `ECONNRESET`. */
  code?: string | undefined;
  /** The message of the error. Default: a message with the code. */
  message?: string | undefined;
  /**
   * `request`: the error is thrown instead of doing the work. `response`: it is thrown after the work was
   * done. Default: `request`.
   */
  direction?: 'request' | 'response' | undefined;
}

/** The call gets an answer with the given status, for example 503. */
export interface StatusFaultSpec extends AnyFaultSpec<'status'> {
  /** The status of the answer, from 200 to 599. Default: `503`. */
  status?: number | undefined;
  /** The time in the header `Retry-After` of the answer. Default: none. */
  retryAfter?: Duration | undefined;
  /** Whether `Retry-After` is a number of seconds or a date. Default: `seconds`. */
  retryAfterAs?: 'seconds' | 'date' | undefined;
  /** Further headers of the answer. Default: none. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** The body of the answer. Default: empty. */
  body?: string | undefined;
  /**
   * `request`: the answer is sent instead of the work. `response`: it is sent after the server has done the
   * work. Default: `request`.
   */
  direction?: 'request' | 'response' | undefined;
}

/** Calls the handler twice for one event. */
export interface DuplicateFaultSpec extends AnyFaultSpec<'duplicate'> {
  /** Whether both calls of the handler run at the same time. Default: `false`, one after the other. */
  together?: boolean | undefined;
}

/** Delays an event until later events are handled. */
export interface ReorderFaultSpec extends AnyFaultSpec<'reorder'> {
  /** How many later events are handled first. Default: `1`. */
  by?: number | undefined;
  /** The longest time to wait for the later events. Default: `1s`. */
  within?: Duration | undefined;
}

/** A constant time, or a distribution from which a random time is chosen for each use. */
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

/** A random delay: many delays are short, and few are long. None is longer than `cap`. */
export interface ExponentialDelaySpec {
  /** Many short times and few long times, like the times between independent requests. Required. */
  distribution: 'exponential';
  /** The mean time. Required. */
  mean: Duration;
  /** The longest time. A longer random time is replaced by it. Default: `1h`. */
  cap?: Duration | undefined;
}

/**
 * A random delay like the latency of a real service. Half of the delays are below `median`, and a few are far
 * above it.
 */
export interface LognormalDelaySpec {
  /**
   * The usual distribution of latencies: most times are near the median, and a few are much longer. Required.
   */
  distribution: 'lognormal';
  /** Half of the times are shorter than this. Required. */
  median: Duration;
  /** How widely the times are spread, from 0 to 10. Default: `1`. */
  sigma?: number | undefined;
  /** The longest time. A longer random time is replaced by it. Default: `1h`. */
  cap?: Duration | undefined;
}

/** A random delay with a heavy tail: a smaller `alpha` gives more very long delays. */
export interface ParetoDelaySpec {
  /** A heavy tail: most times are short, and a few are very long. Required. */
  distribution: 'pareto';
  /** The shortest time. Required. */
  min: Duration;
  /** How quickly long times become rare. A lower number gives a heavier tail. Default: `1.5`. */
  alpha?: number | undefined;
  /** The longest time. A longer random time is replaced by it. Default: `1h`. */
  cap?: Duration | undefined;
}
