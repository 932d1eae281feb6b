import { type Duration, durationMs, OptionsError } from 'holdfast';

const answered = Symbol.for('holdfast.answer');

/** What a handler may answer instead of nothing, which is "done". Plain data; `Tx` is the transaction of the engine. */
export type HandlerResult<Tx = unknown> = { readonly [answered]: true } & (
  | { readonly kind: 'done' }
  | { readonly kind: 'commit'; readonly commit: Commit<Tx> }
  | { readonly kind: 'retry'; readonly error: unknown }
  | { readonly kind: 'snooze'; readonly delayMs: number }
  | { readonly kind: 'park'; readonly because: string; readonly error: unknown }
  | { readonly kind: 'discard'; readonly because: string }
  | { readonly kind: 'reroute'; readonly to: string }
);

/** An effect. What it returns means nothing, but for a promise, which is waited for where transactions can. */
export type Commit<Tx> = (tx: Tx) => unknown;

export function done(): HandlerResult {
  return { [answered]: true, kind: 'done' };
}

/** Done, and `effect` runs inside the transaction that settles the event: both happen, or neither. */
export function commit<Tx>(effect: Commit<Tx>): HandlerResult<Tx> {
  // Without it the event would be done, and its effect would be missing.
  if (typeof effect !== 'function') throw new OptionsError('commit', effect, 'a function');
  return { [answered]: true, kind: 'commit', commit: effect };
}

/** Again later: the class of the error decides how; one that no pack knows counts as transient. */
export function retry(error: unknown): HandlerResult {
  return { [answered]: true, kind: 'retry', error };
}

/** Again after `delay`, at no cost of an attempt. */
export function snooze(delay: Duration): HandlerResult {
  return { [answered]: true, kind: 'snooze', delayMs: durationMs(delay, 'snooze') };
}

/** Into the parking lot, with `because` as its stop reason. */
export function park(because: string, error?: unknown): HandlerResult {
  return { [answered]: true, kind: 'park', because, error };
}

export function discard(because: string): HandlerResult {
  return { [answered]: true, kind: 'discard', because };
}

/** To the end of another topic, which must have been declared. */
export function reroute(to: string): HandlerResult {
  // No store could settle the event, nor any that shares a write with it.
  if (typeof to !== 'string' || to === '') throw new OptionsError('reroute', to, 'the name of a topic');
  return { [answered]: true, kind: 'reroute', to };
}

/** Whatever else a handler returns, as arrow functions happen to, means nothing. */
export function isHandlerResult(given: unknown): given is HandlerResult {
  return typeof given === 'object' && given !== null && answered in given;
}
