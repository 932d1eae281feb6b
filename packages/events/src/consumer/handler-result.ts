import { type Duration, durationMs, OptionsError } from 'holdfast';

const isResult = Symbol.for('holdfast.handlerResult');

/** What a handler may return. Returning nothing means `done()`. `Tx` is the type of the store's transactions. */
export type HandlerResult<Tx = unknown> = { readonly [isResult]: true } & (
  | { readonly kind: 'done' }
  | { readonly kind: 'commit'; readonly commit: Commit<Tx> }
  | { readonly kind: 'retry'; readonly error: unknown }
  | { readonly kind: 'snooze'; readonly delayMs: number }
  | { readonly kind: 'park'; readonly because: string; readonly error: unknown }
  | { readonly kind: 'discard'; readonly because: string }
  | { readonly kind: 'reroute'; readonly to: string }
);

/** Writes an effect within a transaction. Its return value is ignored. */
export type Commit<Tx> = (tx: Tx) => unknown;

/** The event is done. The same as to return nothing. */
export function done(): HandlerResult {
  return { [isResult]: true, kind: 'done' };
}

/** Acknowledges the event and runs `effect` in one transaction: both are stored, or neither. */
export function commit<Tx>(effect: Commit<Tx>): HandlerResult<Tx> {
  // Without this check, the event would be acknowledged without its effect.
  if (typeof effect !== 'function') throw new OptionsError('commit', effect, 'a function');
  return { [isResult]: true, kind: 'commit', commit: effect };
}

/** Retries the event according to the class of the error. An unknown error is treated as transient. */
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

/** The event is removed, and the audit log has the reason. */
export function discard(because: string): HandlerResult {
  return { [isResult]: true, kind: 'discard', because };
}

/** Moves the event to the end of another topic. That topic must exist. */
export function reroute(to: string): HandlerResult {
  // Without this check, the store would refuse the whole batch.
  if (typeof to !== 'string' || to === '') throw new OptionsError('reroute', to, 'the name of a topic');
  return { [isResult]: true, kind: 'reroute', to };
}

/** Consumers treat all other return values like `done()`. */
export function isHandlerResult(given: unknown): given is HandlerResult {
  return typeof given === 'object' && given !== null && isResult in given;
}
