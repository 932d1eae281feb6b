import { OptionsError } from 'holdfast';

export interface PageRequest {
  readonly limit: number;
  /** The `cursor` of the previous page; the list starts at its beginning unless given. */
  readonly cursor?: string;
}

export interface Page<T> {
  readonly items: readonly T[];
  /**
   * Pass this cursor in `PageRequest` to get the next page; `undefined` on the last page. The cursor stays valid after
   * a restart.
   */
  readonly cursor: string | undefined;
}

/** The position of an item in a list that is sorted by a number. Items with equal numbers are sorted by a text. */
export type Place = readonly [number, string];

/**
 * Reads the position at which the previous page ended from its cursor. Throws an `OptionsError` for a text that is no
 * such cursor.
 */
export function placeIn(cursor: string): Place {
  const place = read(cursor);
  if (Array.isArray(place) && typeof place[0] === 'number' && typeof place[1] === 'string')
    return [place[0], place[1]];
  throw wrongCursor(cursor);
}

/**
 * Reads the position from a cursor of a list that is sorted by a whole number only. Throws an `OptionsError` for a text
 * that is no such cursor.
 */
export function numberIn(cursor: string): number {
  const number = Number(cursor);
  if (/^\d+$/.test(cursor) && Number.isSafeInteger(number)) return number;
  throw wrongCursor(cursor);
}

function read(cursor: string): unknown {
  try {
    return JSON.parse(cursor);
  } catch {
    return undefined; // not JSON: `placeIn` throws
  }
}

function wrongCursor(cursor: string): OptionsError {
  return new OptionsError('cursor', cursor, 'one that a page of this list gave');
}
