import {
  type Clock,
  type Duration,
  durationMs,
  type Notice,
  OptionsError,
  subscribe,
  systemClock,
} from 'holdfast';
import { assertKnownFields, isDocument } from 'holdfast/fields';
import { errorType } from './error-type.ts';
import { type Policies, selectionOf } from './selection.ts';

/** A logger like pino: each level is a method that takes an object and a message. */
export type Logger<Level extends string = string> = {
  readonly [level in Level]: (line: RetryLine, message: string) => void;
};

/** The options of `logRetries`. */
export interface LogOptions<Level extends string = string> {
  /** The policies to log: some, or all. Default: all. */
  readonly policies?: Policies | undefined;
  /** The method of the logger to call. Default: `info`. */
  readonly level?: Level | undefined;
  /** Whether to add `error_message`, which may contain data of users. Default: `false`. */
  readonly messages?: boolean | undefined;
  /**
   * The most lines for each event, policy and reason within `window`. Further lines are only counted. Default: `10`.
   */
  readonly linesMax?: number | undefined;
  /** The time in which `linesMax` lines may be written. Default: `1m`. */
  readonly window?: Duration | undefined;
  /** The clock of `window`. Default: the system's. */
  readonly clock?: Clock | undefined;
}

const known: Readonly<Record<keyof LogOptions, true>> = {
  policies: true,
  level: true,
  messages: true,
  linesMax: true,
  window: true,
  clock: true,
};

/** One line of the log. It has no error message, unless the option `messages` is true. */
export interface RetryLine {
  readonly event: 'retry' | 'gave_up' | 'breaker' | 'left_out';
  readonly policy?: string | undefined;
  readonly target?: string | undefined;
  /** The number of the failed attempt. For `gave_up` it is the number of attempts. */
  readonly attempt?: number | undefined;
  readonly reason: string;
  readonly next_delay_ms?: number | undefined;
  readonly error_type?: string | undefined;
  readonly error_message?: string | undefined;
  /** For a breaker: its old and its new state. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** Set in mode `observe`: the policy would have done this, but did not. */
  readonly observed?: true | undefined;
  /** The number of similar lines that were left out before this line. */
  readonly left_out?: number | undefined;
}

/**
 * The most combinations of event, policy and reason that are counted separately. Further combinations share
 * one count.
 */
const windowsMax = 1000;

const messages = {
  retry: 'will retry',
  gave_up: 'gave up',
  breaker: 'breaker changed',
  left_out: 'lines were left out',
} satisfies Record<RetryLine['event'], string>;

const observedMessages: Record<string, string> = {
  retry: 'would retry',
  gave_up: 'would give up',
  breaker: 'breaker changed, and refuses nothing',
};

/**
 * Writes a log line for each retry, each failed call and each state change of a circuit breaker. Returns a
 * function that stops the logging.
 */
export function logRetries<Level extends string = 'info'>(
  logger: Logger<NoInfer<Level>>,
  options: LogOptions<Level> = {},
): () => void {
  if (!isDocument(options)) {
    throw new OptionsError('logRetries', options, "options such as { level: 'warn' }");
  }
  assertKnownFields(known, options);
  const { level = 'info' as Level, clock = systemClock, linesMax = 10 } = options;
  const selection = selectionOf(options.policies ?? 'all');
  const windowMs = durationMs(options.window ?? '1m', 'window');
  // Some loggers are functions that have the levels as methods.
  if (!isDocument(logger) && typeof logger !== 'function') {
    throw new OptionsError('logger', logger, 'a logger such as console');
  }
  if (typeof logger[level] !== 'function') throw new OptionsError('level', level, 'a method of the logger');
  if (!Number.isInteger(linesMax) || linesMax < 1) {
    throw new OptionsError('linesMax', linesMax, 'a whole number from 1');
  }
  const windows = new Map<string, Window>();
  let soonestEndsAt = Infinity;

  function write(line: RetryLine): void {
    logger[level](line, (line.observed && observedMessages[line.event]) || messages[line.event]);
  }

  /**
   * Writes the number of left-out lines of each window that has ended by the time `by`. Removes these
   * windows.
   */
  function close(by: number): void {
    soonestEndsAt = Infinity;
    for (const [key, each] of windows) {
      if (each.endsAt > by) {
        soonestEndsAt = Math.min(soonestEndsAt, each.endsAt);
        continue;
      }
      windows.delete(key);
      const { policy, reason, leftOut: left_out } = each;
      if (left_out > 0) write({ event: 'left_out', policy, reason, left_out });
    }
  }

  function open(key: string, line: RetryLine, now: number): Window {
    const found = windows.get(key);
    if (found) return found;
    if (windows.size >= windowsMax && key !== shared)
      return open(shared, { ...line, policy: undefined, reason: 'other' }, now);
    const made = { policy: line.policy, reason: line.reason, endsAt: now + windowMs, lines: 0, leftOut: 0 };
    windows.set(key, made);
    soonestEndsAt = Math.min(soonestEndsAt, made.endsAt);
    return made;
  }

  const unsubscribe = subscribe((notice) => {
    const line = selection(notice.policy) && lineOf(notice, options.messages === true);
    if (!line) return;
    const now = clock.now();
    const key = JSON.stringify([line.event, line.policy, line.reason, line.observed]);
    const before = windows.get(key);
    // If lines like this one were left out before, this line reports their number. So no timer is needed for
    // that.
    const left_out = before && before.endsAt <= now && before.leftOut > 0 ? before.leftOut : undefined;
    if (before && before.endsAt <= now) windows.delete(key);
    if (soonestEndsAt <= now) close(now);
    const window = open(key, line, now);
    if (window.lines++ < linesMax) write(left_out === undefined ? line : { ...line, left_out });
    else window.leftOut++;
  });

  return () => {
    unsubscribe();
    close(Infinity);
  };
}

const shared = 'other';

interface Window {
  readonly policy: string | undefined;
  readonly reason: string;
  readonly endsAt: number;
  lines: number;
  leftOut: number;
}

function lineOf(notice: Notice, withMessage: boolean): RetryLine | undefined {
  const { policy, target, type } = notice;
  const observed = 'observed' in notice && { observed: notice.observed };
  if (type === 'breaker') {
    const { because: reason, from, to } = notice;
    return { event: type, policy, target, reason, from, to, ...observed };
  }
  if (type !== 'retry' && type !== 'gave_up') return undefined;
  const { outcome, because: reason } = notice;
  const error_type = outcome === undefined ? undefined : errorType(outcome);
  const what =
    type === 'retry'
      ? { attempt: notice.attempt, reason, next_delay_ms: Math.round(notice.delayMs) }
      : { attempt: notice.attempts, reason };
  return {
    event: type,
    policy,
    target,
    ...what,
    error_type,
    ...observed,
    ...(withMessage && outcome instanceof Error && { error_message: outcome.message }),
  };
}
