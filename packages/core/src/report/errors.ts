import { isObject } from '../classify/is-object.ts';
import type { RunEnding } from './story.ts';

/**
 * The base class of all errors that Holdfast creates. Match on `code`: two copies of a package can be installed, and
 * `instanceof` recognises only one of them.
 */
export class HoldfastError extends Error {
  declare readonly code: string;
  /** How the run that threw this error ended, for `storyOf`. A private field is ten times cheaper than a WeakMap. */
  #ending: RunEnding | undefined;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /**
   * Whether this copy of Holdfast created `error`. `instanceof` would read the prototype of `error`, which throws for
   * some proxies.
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

/** The error for a document or an option that cannot be used. It names the path, the value and what was expected. */
export class OptionsError extends HoldfastError {
  declare readonly path: string;
  declare readonly value: unknown;
  declare readonly expected: string;

  constructor(path: string, value: unknown, expected: string) {
    super('HOLDFAST_OPTIONS', `${path}: expected ${expected}, got ${show(value)}`);
    this.path = path;
    this.value = value;
    this.expected = expected;
  }
}

/** Returns a value as text, at most 80 characters. */
function show(value: unknown): string {
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
/** The reasons for which a policy refuses a call before it calls the operation. */
export type RefusalReason = keyof typeof refusals;

/** The error code of each refusal. The codes are written out instead of computed, because refusals must be cheap. */
const codes: Record<RefusalReason, string> = {
  breaker_open: 'HOLDFAST_BREAKER_OPEN',
  bulkhead_full: 'HOLDFAST_BULKHEAD_FULL',
  rate_limited: 'HOLDFAST_RATE_LIMITED',
  throttled: 'HOLDFAST_THROTTLED',
};

/**
 * The error of a call that the policy refused before it called the operation. `reason` says which part refused it, such
 * as the breaker. `retryAfterMs`, if known, says when that part may admit a call.
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
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * Creates a refusal without a stack trace, which would cost ten times as much and point into this library.
 */
export function refusedQuickly(...args: ConstructorParameters<typeof RefusedError>): RefusedError {
  const host = Error as { stackTraceLimit?: number };
  const limit = host.stackTraceLimit as number;
  host.stackTraceLimit = 0;
  const error = new RefusedError(...args);
  host.stackTraceLimit = limit;
  return error;
}

/**
 * The error for a time limit that passed: of one attempt (`HOLDFAST_ATTEMPT_TIMEOUT`) or of the whole work
 * (`HOLDFAST_PATIENCE_SPENT`).
 */
export class ExpiredError extends HoldfastError {
  declare readonly afterMs: number;

  constructor(code: string, what: string, afterMs: number, cause: unknown) {
    super(code, `${what} took longer than ${afterMs} ms`, cause === undefined ? undefined : { cause });
    this.afterMs = afterMs;
  }
}

export function isExpired(error: unknown): error is ExpiredError {
  return HoldfastError.is(error) && error instanceof ExpiredError;
}
