import { isObject } from './is-object.ts';

/** At most this many errors are read from one error and its causes. So a cycle of causes ends, too. */
export const causesMax = 16;

/** An object of unknown shape. Reading a property may throw. */
export type UnknownObject = Readonly<Record<string, unknown>>;

/**
 * Returns `error`, its causes, and the errors of an AggregateError: at most `causesMax` objects, each once. If a
 * property throws, returns the errors found so far.
 */
export function causesOf(error: unknown): UnknownObject[] {
  const found: UnknownObject[] = [];
  const add = (each: unknown) => {
    if (isObject(each) && found.length < causesMax && !found.includes(each)) found.push(each);
  };
  add(error);
  try {
    // The loop also visits the errors that `add` appends to `found`.
    for (const { errors, cause } of found) {
      if (Array.isArray(errors)) errors.slice(0, causesMax).forEach(add);
      add(cause);
    }
  } catch {
    // A getter threw: the errors found before it are kept.
  }
  return found;
}
