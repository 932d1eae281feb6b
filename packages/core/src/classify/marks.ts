import type { Judgement } from '../decide/outcome.ts';
import { type Duration, durationMs } from '../policy/duration.ts';
import { causesOf } from './causes-of.ts';

/** An error that can carry a mark: itself, or where a primitive was thrown, an Error with that as its cause. */
export type Marked<E> = E extends object ? E : Error;

const marks = /* @__PURE__ */ new WeakMap<object, Judgement>();

/**
 * Says that `error` may well not happen again, whatever the packs make of it: `throw transient(error)`.
 * `unprocessed` adds the promise that the attempt had no effect, which lets it be repeated even where that is unsafe.
 */
export function transient<E>(error: E, { unprocessed = false }: { unprocessed?: boolean } = {}): Marked<E> {
  return mark(error, { class: 'transient', unprocessed });
}

/** Says that `error` would only happen again, whatever the packs make of it. */
export function permanent<E>(error: E): Marked<E> {
  return mark(error, { class: 'fatal' });
}

/**
 * Says that the target wants to be left alone for `delay`: the next attempt comes no earlier. A number below zero is a
 * time that has passed already.
 */
export function retryAfter<E>(error: E, delay: Duration): Marked<E> {
  const retryAfterMs = durationMs(typeof delay === 'number' ? Math.max(0, delay) : delay);
  return mark(error, { class: 'throttled', retryAfterMs });
}

/** What was last said by hand of `error`, or else of the nearest of its causes. */
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
