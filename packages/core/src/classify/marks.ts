import type { Judgement } from '../decide/outcome.ts';
import { type Duration, durationMs } from '../policy/duration.ts';
import { causesOf } from './causes-of.ts';

/** An error that can carry a mark: the error itself, or for a primitive an Error with it as its cause. */
export type Marked<E> = E extends object ? E : Error;

const marks = /* @__PURE__ */ new WeakMap<object, Judgement>();

/**
 * Marks `error` as worth another attempt, whatever the packs say: `throw transient(error)`. `unprocessed: true` promises
 * that the attempt had no effect: then even an operation with `idempotent: false` is repeated.
 */
export function transient<E>(error: E, { unprocessed = false }: { unprocessed?: boolean } = {}): Marked<E> {
  return mark(error, { class: 'transient', unprocessed });
}

/** Marks `error` as not worth another attempt, whatever the packs say. */
export function permanent<E>(error: E): Marked<E> {
  return mark(error, { class: 'fatal' });
}

/**
 * Marks `error` as throttled: the next attempt starts `delay` from now at the earliest. A negative number counts as 0.
 */
export function retryAfter<E>(error: E, delay: Duration): Marked<E> {
  const retryAfterMs = durationMs(typeof delay === 'number' ? Math.max(0, delay) : delay);
  return mark(error, { class: 'throttled', retryAfterMs });
}

/** The last mark of `error`, or else of the nearest of its causes that has one. */
export function markOf(error: unknown): Judgement | undefined {
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
