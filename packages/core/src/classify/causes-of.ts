import { isObject } from './is-object.ts';

/** The most errors that are read inside one error. It bounds the depth and width of causes, and ends cycles. */
export const causesMax = 16;

/** An object of unknown shape: a property may be anything, or throw when it is read. */
export type UnknownObject = Readonly<Record<string, unknown>>;

/**
 * Returns `error` and the errors inside it: its causes, and the errors of an AggregateError. Each is listed once, at
 * most `causesMax` in all, and primitives are left out. A property that throws when it is read ends the list.
 */
export function causesOf(error: unknown): UnknownObject[] {
  const found: UnknownObject[] = [];
  const add = (each: unknown) => {
    if (isObject(each) && found.length < causesMax && !found.includes(each)) found.push(each);
  };
  add(error);
  try {
    // `add` appends to the list during the loop.
    for (const { errors, cause } of found) {
      if (Array.isArray(errors)) errors.slice(0, causesMax).forEach(add);
      add(cause);
    }
  } catch {
    // A getter threw: the errors found before it are kept.
  }
  return found;
}
