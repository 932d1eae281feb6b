import { OptionsError } from 'holdfast';

/** Which part of a list is wanted. */
export interface PageRequest {
  /** At most so many. */
  readonly limit: number;
  /** From the page before; absent: from the beginning. */
  readonly cursor?: string;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** For the next page; `undefined`: this was the last. Opaque, and valid after a restart. */
  readonly cursor: string | undefined;
}

/** Where an item stands in a list: by a number, and by a text among those with the same. */
export type Place = readonly [number, string];

/** Where the page before ended. Throws an `OptionsError` where no page gave such a cursor. */
export function placeIn(cursor: string): Place {
  const place = read(cursor);
  if (Array.isArray(place) && typeof place[0] === 'number' && typeof place[1] === 'string')
    return [place[0], place[1]];
  throw strange(cursor);
}

/** The same, of lists that go by a whole number alone. */
export function numberIn(cursor: string): number {
  const number = Number(cursor);
  if (/^\d+$/.test(cursor) && Number.isSafeInteger(number)) return number;
  throw strange(cursor);
}

function read(cursor: string): unknown {
  try {
    return JSON.parse(cursor);
  } catch {
    return undefined; // the caller says what is wrong with it
  }
}

function strange(cursor: string): OptionsError {
  return new OptionsError('cursor', cursor, 'one that a page of this list gave');
}
