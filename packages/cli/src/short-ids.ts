import { UsageError } from './command.ts';
import type { Terminal } from './terminal.ts';

/** 8 hexadecimal digits are random enough to find one id among millions. */
const lengthMin = 8;

/**
 * The ids that this software makes: UUIDs and hashes. Their ends are random. Other ids stay whole, because
 * the end of an id such as `order-17-2026-01-31` may be the end of many ids.
 */
const randomEnd = /^([\da-f]{8}-([\da-f]{4}-){3}[\da-f]{12}|[\da-f]{13,})$/i;

/**
 * Shortens ids to their ends. Ids that sort by time begin alike, so a beginning would fit other ids of the
 * store; an end fits only one.
 */
export function shortIds(ids: readonly string[]): Map<string, string> {
  const all = [...new Set(ids)];
  const long = all.filter((id) => randomEnd.test(id));
  const length = uniqueLength(long);
  return new Map(
    all.map((id) => [id, randomEnd.test(id) && id.length > length + 1 ? `…${id.slice(-length)}` : id]),
  );
}

function uniqueLength(ids: readonly string[]): number {
  const longest = Math.max(0, ...ids.map(({ length }) => length));
  for (let length = lengthMin; length < longest; length += 1) {
    if (new Set(ids.map((id) => id.slice(-length))).size === ids.length) return length;
  }
  return longest;
}

/** The user must give at least this many characters, so that a typing error does not discard an event. */
const givenMin = 6;

/**
 * Finds the whole id of which the user gave the start or the end. Throws a `UsageError` if several ids fit or
 * too few characters were given.
 */
export async function wholeId(
  what: string,
  given: string,
  pages: AsyncIterable<readonly string[]>,
): Promise<string | undefined> {
  const part = given.replace(/^…|…$/g, '');
  const found = new Set<string>();
  for await (const ids of pages) {
    for (const id of ids) {
      if (id === given) return id;
      if (part !== '' && (id.startsWith(part) || id.endsWith(part))) found.add(id);
    }
    if (found.size > candidatesMax) break;
  }
  if (found.size === 1 && part.length < givenMin)
    throw new UsageError(
      `"${given}" is too short: say at least ${givenMin} characters of the start or the end of ${[...found][0]}.`,
    );
  if (found.size < 2) return [...found][0];
  const named = [...found].slice(0, candidatesMax).join(', ');
  const more = found.size > candidatesMax ? ' and more' : '';
  throw new UsageError(`several ${what} fit "${given}": ${named}${more}; say more of it.`);
}

const candidatesMax = 5;

/** Returns a function that shortens an id for a terminal. In a pipe, ids stay whole. */
export function shortNames(
  ids: readonly string[],
  { columns }: Pick<Terminal, 'columns'>,
): (id: string) => string {
  const short = columns === undefined ? new Map<string, string>() : shortIds(ids);
  return (id) => short.get(id) ?? id;
}
