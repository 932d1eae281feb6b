import { isObject } from './is-object.ts';

/** How many errors are looked at inside one: a bound on depth, width and circles alike. */
export const causesMax = 16;

/** An object of which nothing is known: any property may be anything, or throw when it is read. */
export type UnknownObject = Readonly<Record<string, unknown>>;

/**
 * `error`, then what is inside it: the errors of an AggregateError, and causes, each once and 16 at most. Primitives are
 * left out. What throws when it is read ends the list.
 */
export function causesOf(error: unknown): UnknownObject[] {
  const found: UnknownObject[] = [];
  const add = (each: unknown) => {
    if (isObject(each) && found.length < causesMax && !found.includes(each)) found.push(each);
  };
  add(error);
  try {
    // The list grows while it is walked.
    for (const { errors, cause } of found) {
      if (Array.isArray(errors)) errors.slice(0, causesMax).forEach(add);
      add(cause);
    }
  } catch {
    // A getter that throws: what was found before it is all there is.
  }
  return found;
}
