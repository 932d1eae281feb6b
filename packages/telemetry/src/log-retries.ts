import {
  type Clock,
  type Duration,
  durationMs,
  type Notice,
  OptionsError,
  subscribe,
  systemClock,
} from 'holdfast';
import { refuseUnknown } from 'holdfast/fields';
import { errorType } from './error-type.ts';
import { type Policies, selectionOf } from './selection.ts';

/** A logger of pino's shape: an object first, then a message. */
export type Logger<Level extends string = string> = {
  readonly [level in Level]: (line: RetryLine, message: string) => void;
};

export interface LogOptions<Level extends string = string> {
  readonly policies?: Policies | undefined;
  /** The method of the logger that is called; `info` unless said. */
  readonly level?: Level | undefined;
  /** Adds `error_message`. Messages may hold what users sent, so nobody gets them without asking. */
  readonly messages?: boolean | undefined;
  /** Lines for each event, policy and reason within `window`; the others are counted. */
  readonly linesMax?: number | undefined;
  readonly window?: Duration | undefined;
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

/** What a line holds besides what the logger adds. */
export interface RetryLine {
  readonly event: 'retry' | 'gave_up' | 'breaker' | 'left_out';
  readonly policy?: string | undefined;
  readonly target?: string | undefined;
  /** The attempt that has just failed; of work that was given up, how many there were. */
  readonly attempt?: number | undefined;
  readonly reason: string;
  readonly next_delay_ms?: number | undefined;
  readonly error_type?: string | undefined;
  readonly error_message?: string | undefined;
  /** Of a breaker. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** Lines like this one that were not written since the last. */
  readonly left_out?: number | undefined;
}

/** Events, policies and reasons that have windows of their own; later ones share one. */
const windowsMax = 1000;

const messages = {
  retry: 'will retry',
  gave_up: 'gave up',
  breaker: 'breaker changed',
  left_out: 'lines were left out',
} satisfies Record<RetryLine['event'], string>;

/** Writes a line for each retry, each end without success and each change of a breaker. Returns the way to stop. */
export function logRetries<Level extends string = 'info'>(
  logger: Logger<NoInfer<Level>>,
  options: LogOptions<Level> = {},
): () => void {
  refuseUnknown(known, options);
  const { level = 'info' as Level, clock = systemClock, linesMax = 10 } = options;
  const selection = selectionOf(options.policies ?? 'all');
  const windowMs = durationMs(options.window ?? '1m', 'window');
  if (typeof logger[level] !== 'function') throw new OptionsError('level', level, 'a method of the logger');
  if (!Number.isInteger(linesMax) || linesMax < 1) {
    throw new OptionsError('linesMax', linesMax, 'a whole number from 1');
  }
  const windows = new Map<string, Window>();
  let soonestEndsAt = Infinity;

  function write(line: RetryLine): void {
    logger[level](line, messages[line.event]);
  }

  /** Says what was left out in the windows that are over by then, and forgets them. */
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
    const key = JSON.stringify([line.event, line.policy, line.reason]);
    const before = windows.get(key);
    // What was left out before is said in this line, so that nothing has to wake up only to say it.
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
  if (type === 'breaker') {
    const { because: reason, from, to } = notice;
    return { event: type, policy, target, reason, from, to };
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
    ...(withMessage && outcome instanceof Error && { error_message: outcome.message }),
  };
}
