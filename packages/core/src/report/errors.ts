import { isObject } from '../classify/is-object.ts';
import type { RunEnding } from './story.ts';

/**
 * The base class of all Holdfast errors. To recognise an error, check its `code`, because `instanceof` fails
 * if two copies of the package are installed.
 */
export class HoldfastError extends Error {
  declare readonly code: string;
  /**
   * How the run that threw this error ended; `storyOf` reads it. A private field is ten times faster than a
   * WeakMap.
   */
  #ending: RunEnding | undefined;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /**
   * Whether this copy of Holdfast created `error`. Unlike `instanceof`, this check never throws for a proxy.
   */
  static is(error: unknown): error is HoldfastError {
    return isObject(error) && #ending in error;
  }

  static endingOf(error: HoldfastError): RunEnding | undefined {
    return error.#ending;
  }

  static setEnding(error: HoldfastError, ending: RunEnding): void {
    error.#ending = ending;
  }

  override get name(): string {
    return this.code;
  }
}

/**
 * The error for an invalid document or option. It contains the path of the field, its value and what was
 * expected. For a misspelt field, `meant` is the name that was probably meant.
 */
export class OptionsError extends HoldfastError {
  declare readonly path: string;
  declare readonly value: unknown;
  declare readonly expected: string;
  declare readonly meant: string | undefined;
  /** True: no option has this name. False: the option exists, but its value is wrong. */
  declare readonly isUnknown: boolean;

  constructor(path: string, value: unknown, expected: string, meant?: string, isUnknown = false) {
    const hint = meant ? `; did you mean ${meant}?` : '';
    super(
      'HOLDFAST_OPTIONS',
      isUnknown
        ? `${path}: not an option${hint || `; there are ${expected}`}`
        : `${path}: expected ${expected}, got ${show(value)}${hint}`,
    );
    this.path = path;
    this.value = value;
    this.expected = expected;
    this.meant = meant;
    this.isUnknown = isUnknown;
  }
}

export function show(value: unknown): string {
  try {
    return ((typeof value !== 'number' && JSON.stringify(value)) || String(value)).slice(0, 80);
  } catch {
    return typeof value; // a cycle, or a `toJSON` that throws
  }
}

const refusals = {
  breaker_open: 'the breaker is open',
  bulkhead_full: 'the bulkhead and its queue are full',
  rate_limited: 'the rate limit is reached',
  throttled: 'the target has been refusing, so less is sent',
};
/** Why a policy refused a call without calling the operation. */
export type RefusalReason = keyof typeof refusals;

/** The error code of each refusal. A table is faster than computing the codes, and refusals must be cheap. */
const codes: Record<RefusalReason, string> = {
  breaker_open: 'HOLDFAST_BREAKER_OPEN',
  bulkhead_full: 'HOLDFAST_BULKHEAD_FULL',
  rate_limited: 'HOLDFAST_RATE_LIMITED',
  throttled: 'HOLDFAST_THROTTLED',
};

/**
 * The error of a call that the policy refused without calling the operation. `retryAfterMs` says after how
 * many whole ms a call may be admitted, if that is known.
 */
export class RefusedError extends HoldfastError {
  declare readonly reason: RefusalReason;
  declare readonly target: string | undefined;
  declare readonly retryAfterMs: number | undefined;

  constructor(reason: RefusalReason, target?: string, retryAfterMs?: number) {
    const says = refusals[reason];
    super(codes[reason], target === undefined ? says : `${target}: ${says}`);
    this.reason = reason;
    this.target = target;
    this.retryAfterMs = knownMs(retryAfterMs);
  }
}

/** Rounds up to whole ms, so that a call after this time is not too early. Infinity means that it is unknown. */
export function knownMs(ms: number | undefined): number | undefined {
  return ms! < Infinity ? Math.ceil(ms!) : undefined;
}

let isTracing = false;

/**
 * Switches stack traces of refusals on or off. They are off by default, because a stack trace makes a refusal
 * ten times slower. Switch them on in development, to see which code called the policy.
 */
export function traceRefusals(on = true): void {
  isTracing = on;
}

export function refusedQuickly(...args: ConstructorParameters<typeof RefusedError>): RefusedError {
  if (isTracing) return new RefusedError(...args);
  const host = Error as { stackTraceLimit?: number };
  const limit = host.stackTraceLimit as number;
  host.stackTraceLimit = 0;
  const error = new RefusedError(...args);
  host.stackTraceLimit = limit;
  return error;
}

/**
 * The error of a time limit: of one attempt (`HOLDFAST_ATTEMPT_TIMEOUT`), or of the whole work
 * (`HOLDFAST_PATIENCE_SPENT`).
 */
export class ExpiredError extends HoldfastError {
  /**
   * The time limit, in whole ms. It is not the measured time, so that all errors of one limit have the same
   * message.
   */
  declare readonly limitMs: number;

  constructor(code: string, what: string, limitMs: number, cause: unknown) {
    const whole = Math.round(limitMs);
    super(code, `${what} took longer than ${whole} ms`, cause === undefined ? undefined : { cause });
    this.limitMs = whole;
  }
}

export function isExpired(error: unknown): error is ExpiredError {
  return HoldfastError.is(error) && error instanceof ExpiredError;
}
