import { OptionsError } from 'holdfast';

/** Asks for one page of a list. */
export interface PageRequest {
  /** The most items on the page. */
  readonly limit: number;
  /** The cursor of the page before; from the beginning unless given. */
  readonly cursor?: string;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** For the next page; `undefined` on the last page. Opaque, and valid after a restart. */
  readonly cursor: string | undefined;
}

/** The position of an item in a sorted list: by a number, and by a text among equal numbers. */
export type Place = readonly [number, string];

/** The position at which the page before ended. Throws an `OptionsError` for a cursor that no page gave. */
export function placeIn(cursor: string): Place {
  const place = read(cursor);
  if (Array.isArray(place) && typeof place[0] === 'number' && typeof place[1] === 'string')
    return [place[0], place[1]];
  throw wrongCursor(cursor);
}

/** The same, for lists that are sorted by a whole number alone. */
export function numberIn(cursor: string): number {
  const number = Number(cursor);
  if (/^\d+$/.test(cursor) && Number.isSafeInteger(number)) return number;
  throw wrongCursor(cursor);
}

function read(cursor: string): unknown {
  try {
    return JSON.parse(cursor);
  } catch {
    return undefined; // the caller throws
  }
}

function wrongCursor(cursor: string): OptionsError {
  return new OptionsError('cursor', cursor, 'one that a page of this list gave');
}
