import { type Duration, durationMs, OptionsError } from 'holdfast';

const isResult = Symbol.for('holdfast.handlerResult');

/** What a handler may return. Returning nothing means `done()`. Plain data; `Tx` is the transaction of the engine. */
export type HandlerResult<Tx = unknown> = { readonly [isResult]: true } & (
  | { readonly kind: 'done' }
  | { readonly kind: 'commit'; readonly commit: Commit<Tx> }
  | { readonly kind: 'retry'; readonly error: unknown }
  | { readonly kind: 'snooze'; readonly delayMs: number }
  | { readonly kind: 'park'; readonly because: string; readonly error: unknown }
  | { readonly kind: 'discard'; readonly because: string }
  | { readonly kind: 'reroute'; readonly to: string }
);

/** An effect inside a transaction. Its value is ignored; a promise is awaited where transactions are asynchronous. */
export type Commit<Tx> = (tx: Tx) => unknown;

export function done(): HandlerResult {
  return { [isResult]: true, kind: 'done' };
}

/** The event is done, and `effect` runs inside the transaction that settles it: both happen, or neither. */
export function commit<Tx>(effect: Commit<Tx>): HandlerResult<Tx> {
  // Otherwise the event would be settled without its effect.
  if (typeof effect !== 'function') throw new OptionsError('commit', effect, 'a function');
  return { [isResult]: true, kind: 'commit', commit: effect };
}

/** Retries the event as the class of the error demands; an error that no pack knows counts as transient. */
export function retry(error: unknown): HandlerResult {
  return { [isResult]: true, kind: 'retry', error };
}

/** Handles the event again after `delay`, without counting an attempt. */
export function snooze(delay: Duration): HandlerResult {
  return { [isResult]: true, kind: 'snooze', delayMs: durationMs(delay, 'snooze') };
}

/** Moves the event to the parking lot, with `because` as its stop reason. */
export function park(because: string, error?: unknown): HandlerResult {
  return { [isResult]: true, kind: 'park', because, error };
}

export function discard(because: string): HandlerResult {
  return { [isResult]: true, kind: 'discard', because };
}

/** Moves the event to the end of another topic, which must have been declared. */
export function reroute(to: string): HandlerResult {
  // A store would refuse it, together with all settlements of the same batch.
  if (typeof to !== 'string' || to === '') throw new OptionsError('reroute', to, 'the name of a topic');
  return { [isResult]: true, kind: 'reroute', to };
}

/** False for other values, which arrow functions may return by accident. They mean `done()`. */
export function isHandlerResult(given: unknown): given is HandlerResult {
  return typeof given === 'object' && given !== null && isResult in given;
}
