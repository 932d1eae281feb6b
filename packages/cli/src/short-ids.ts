import { UsageError } from './command.ts';
import type { Terminal } from './terminal.ts';

const lengthMin = 8;
const worthwhile = 13;

/**
 * Shortens ids as far as they still differ. It keeps the start or the end of the ids, whichever is shorter.
 * Ids that sort by time begin alike, so their ends differ sooner.
 */
export function shortIds(ids: readonly string[]): Map<string, string> {
  const all = [...new Set(ids)];
  const start = uniqueLength(all, (id, length) => id.slice(0, length));
  const end = uniqueLength(all, (id, length) => id.slice(-length));
  return new Map(
    all.map((id) => {
      if (id.length < worthwhile || id.length <= Math.min(start, end) + 1) return [id, id];
      return [id, end < start ? `…${id.slice(-end)}` : `${id.slice(0, start)}…`];
    }),
  );
}

function uniqueLength(ids: readonly string[], part: (id: string, length: number) => string): number {
  const longest = Math.max(0, ...ids.map(({ length }) => length));
  for (let length = lengthMin; length < longest; length += 1) {
    if (new Set(ids.map((id) => part(id, length))).size === ids.length) return length;
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
