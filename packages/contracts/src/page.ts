import { OptionsError } from 'holdfast';

/** The part of a list to read: at most `limit` items after the position `cursor`. */
export interface PageRequest {
  readonly limit: number;
  /** The `cursor` of the previous page. Without it, the list starts at its beginning. */
  readonly cursor?: string;
  /**
   * The most stored items that a text search reads for one page; no limit by default. So the page may have
   * fewer than `limit` items.
   */
  readonly lookMax?: number;
}

/** A part of a list. If `cursor` is `undefined`, it is the last part. */
export interface Page<T> {
  readonly items: readonly T[];
  /**
   * The position after this page: give it as `cursor` of the next request, even after a restart. `undefined`:
   * this is the last page.
   */
  readonly cursor: string | undefined;
  /** How many items were read, if the search stopped at `lookMax`. To continue the search, request the next page. */
  readonly looked?: number;
}

/** The position in a list that is sorted by a number and then by a text. */
export type Place = readonly [number, string];

/** Returns the position at which the previous page ended. Throws an `OptionsError` for an invalid cursor. */
export function placeIn(cursor: string): Place {
  const place = read(cursor);
  if (Array.isArray(place) && typeof place[0] === 'number' && typeof place[1] === 'string')
    return [place[0], place[1]];
  throw wrongCursor(cursor);
}

/** Reads the cursor of a list that is sorted by a whole number. Throws an `OptionsError` for an invalid cursor. */
export function numberIn(cursor: string): number {
  const number = Number(cursor);
  if (/^\d+$/.test(cursor) && Number.isSafeInteger(number)) return number;
  throw wrongCursor(cursor);
}

/** Returns how many stored items a text search may read for one page. */
export function lookMaxOf({ lookMax }: PageRequest): number {
  if (lookMax !== undefined && !(typeof lookMax === 'number' && lookMax >= 1))
    throw new OptionsError('lookMax', lookMax, 'a number from 1');
  return lookMax ?? Infinity;
}

function read(cursor: string): unknown {
  try {
    return JSON.parse(cursor);
  } catch {
    return undefined; // The cursor is not JSON, so `placeIn` throws.
  }
}

function wrongCursor(cursor: string): OptionsError {
  return new OptionsError('cursor', cursor, 'one that a page of this list gave');
}
