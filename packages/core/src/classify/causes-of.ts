import { isObject } from './is-object.ts';

/** `causesOf` returns at most this many errors. The limit also ends a cycle of causes. */
export const causesMax = 16;

/** An object of unknown shape. Reading a property may throw. */
export type UnknownObject = Readonly<Record<string, unknown>>;

/**
 * Returns `error`, its causes, and the errors inside an AggregateError: at most `causesMax` objects, each
 * only once. If reading a property throws, returns the errors found before.
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
    // A getter of an error threw. The errors found so far are returned.
  }
  return found;
}
