import { type Duration, durationMs, OptionsError } from 'holdfast';

const isResult = Symbol.for('holdfast.handlerResult');

/**
 * What a handler may return. Returning nothing means `done()`. `Tx` is the type of a transaction of the
 * store.
 */
export type HandlerResult<Tx = unknown> = { readonly [isResult]: true } & (
  | { readonly kind: 'done' }
  | { readonly kind: 'commit'; readonly commit: Commit<Tx> }
  | { readonly kind: 'retry'; readonly error: unknown }
  | { readonly kind: 'snooze'; readonly delayMs: number }
  | { readonly kind: 'park'; readonly because: string; readonly error: unknown }
  | { readonly kind: 'discard'; readonly because: string }
  | { readonly kind: 'reroute'; readonly to: string }
);

/**
 * A function that writes data within the transaction `tx`. Its return value is ignored. With SQLite it must be
 * synchronous, because a transaction of SQLite ends when the function returns.
 */
export type Commit<Tx> = (tx: Tx) => Tx extends SynchronousTransaction ? NoPromise : unknown;

/** What only a transaction of SQLite (`DatabaseSync` of Node) has. */
interface SynchronousTransaction {
  readonly isTransaction: boolean;
  exec(sql: string): void;
}

type NoPromise =
  | (object & { readonly then?: never })
  | string
  | number
  | bigint
  | boolean
  | symbol
  | null
  | undefined
  // biome-ignore lint/suspicious/noConfusingVoidType: most of these functions return nothing
  | void;

/** The event is done. Returning nothing has the same effect. */
export function done(): HandlerResult {
  return { [isResult]: true, kind: 'done' };
}

/** Runs `effect` and acknowledges the event in one transaction: both are stored, or neither. */
export function commit<Tx>(effect: Commit<Tx>): HandlerResult<Tx> {
  // If a call passed no function, the event would be acknowledged without its effect.
  if (typeof effect !== 'function') throw new OptionsError('commit', effect, 'a function');
  return { [isResult]: true, kind: 'commit', commit: effect };
}

/**
 * Retries the event with the delay that the policy chooses, even if the policy does not recognize the error
 * as temporary. Exception: an error that the code marked as fatal is not retried.
 */
export function retry(error: unknown): HandlerResult {
  return { [isResult]: true, kind: 'retry', error };
}

/** Handles the event again after `delay`, without counting an attempt. */
export function snooze(delay: Duration): HandlerResult {
  return { [isResult]: true, kind: 'snooze', delayMs: durationMs(delay, 'snooze') };
}

/** Parks the event, that is, sets it aside for an operator. `because` is the reason that the operator sees. */
export function park(because: string, error?: unknown): HandlerResult {
  return { [isResult]: true, kind: 'park', because, error };
}

/** Removes the event. The reason `because` is stored in the audit log. */
export function discard(because: string): HandlerResult {
  return { [isResult]: true, kind: 'discard', because };
}

/** Moves the event to another topic, after the events that are already there. That topic must exist. */
export function reroute(to: string): HandlerResult {
  // With an invalid topic, the store would refuse the whole batch of results.
  if (typeof to !== 'string' || to === '') throw new OptionsError('reroute', to, 'the name of a topic');
  return { [isResult]: true, kind: 'reroute', to };
}

/**
 * Returns true for values that `done`, `commit`, `retry` and the other functions of this file return.
 * Consumers treat all other values like `done()`.
 */
export function isHandlerResult(given: unknown): given is HandlerResult {
  return typeof given === 'object' && given !== null && isResult in given;
}
