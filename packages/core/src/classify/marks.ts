import type { Judgement } from '../decide/outcome.ts';
import { type Duration, durationMs } from '../policy/duration.ts';
import { causesOf } from './causes-of.ts';
import { isObject } from './is-object.ts';

/**
 * The type that `transient`, `permanent` and `retryAfter` return. A primitive value is wrapped in an Error.
 */
export type Marked<E> = E extends object ? E : Error;

const marks = /* @__PURE__ */ new WeakMap<object, Judgement>();

/**
 * Marks `error` so that it is retried: `throw transient(error)`. With `unprocessed: true`, the caller
 * promises that the attempt had no effect. In this case a retry is made even for an operation with
 * `idempotent: false`.
 */
export function transient<E>(error: E, { unprocessed = false }: { unprocessed?: boolean } = {}): Marked<E> {
  return mark(error, { class: 'transient', unprocessed });
}

/** Marks `error` so that it is not retried, whatever the classifiers say. */
export function permanent<E>(error: E): Marked<E> {
  return mark(error, { class: 'fatal' });
}

/**
 * Marks `error` as throttled: the next attempt starts after `delay` at the earliest. A negative `delay` means
 * 0.
 */
export function retryAfter<E>(error: E, delay: Duration): Marked<E> {
  const retryAfterMs = durationMs(typeof delay === 'number' ? Math.max(0, delay) : delay);
  return mark(error, { class: 'throttled', retryAfterMs });
}

/**
 * Returns the latest mark that `transient`, `permanent` or `retryAfter` has set on `error`. If `error` has no
 * mark, returns the mark of its nearest cause that has one.
 */
export function markOf(error: unknown): Judgement | undefined {
  if (!isObject(error)) return undefined;
  const own = marks.get(error);
  if (own || (!('cause' in error) && !('errors' in error))) return own;
  for (const each of causesOf(error)) {
    const marked = marks.get(each);
    if (marked) return marked;
  }
  return undefined;
}

function mark<E>(error: E, judgement: Judgement): Marked<E> {
  const marked = Object(error) === error ? error : new Error(String(error), { cause: error });
  marks.set(marked as object, judgement);
  return marked as Marked<E>;
}
