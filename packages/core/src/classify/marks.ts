import type { Judgement } from '../decide/outcome.ts';
import { type Duration, durationMs } from '../policy/duration.ts';
import { causesOf } from './causes-of.ts';
import { isObject } from './is-object.ts';

/** The type of a marked error: the error itself or, for a primitive value, a new Error whose cause is that value. */
export type Marked<E> = E extends object ? E : Error;

const marks = /* @__PURE__ */ new WeakMap<object, Judgement>();

/**
 * Marks `error` so that it is tried again, whatever the classifiers say: `throw transient(error)`. `unprocessed: true`
 * promises that the attempt had no effect: then even an operation with `idempotent: false` is repeated.
 */
export function transient<E>(error: E, { unprocessed = false }: { unprocessed?: boolean } = {}): Marked<E> {
  return mark(error, { class: 'transient', unprocessed });
}

/** Marks `error` so that it is not tried again, whatever the classifiers say. */
export function permanent<E>(error: E): Marked<E> {
  return mark(error, { class: 'fatal' });
}

/** Marks `error` as throttled: the next attempt starts after `delay` at the earliest. A negative number counts as 0. */
export function retryAfter<E>(error: E, delay: Duration): Marked<E> {
  const retryAfterMs = durationMs(typeof delay === 'number' ? Math.max(0, delay) : delay);
  return mark(error, { class: 'throttled', retryAfterMs });
}

/** Returns the last mark of `error`. If it has none, returns the mark of the nearest of its causes that has one. */
export function markOf(error: unknown): Judgement | undefined {
  if (!isObject(error)) return undefined;
  const own = marks.get(error);
  // Most errors have no cause: for those, no list of causes is made.
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
