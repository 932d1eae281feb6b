/**
 * Returns the name that is most similar to a misspelt word. Returns undefined if more than a third of the
 * characters of the word would have to change.
 */
export function nearest(word: string, names: readonly string[]): string | undefined {
  const close = Math.ceil(word.length / 3);
  return names
    .map((name) => [name, mistakes(word.toLowerCase(), name.toLowerCase())] as const)
    .sort(([, a], [, b]) => a - b)
    .find(([name, wrong]) => wrong <= close && wrong < Math.max(word.length, name.length))?.[0];
}

/**
 * Returns the fewest edits that turn `from` into `to`. One edit adds, drops or replaces a character, or swaps
 * two neighbouring characters.
 */
function mistakes(from: string, to: string): number {
  let before: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSwap = from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      row[j] = Math.min(
        last[j]! + 1,
        row[j - 1]! + 1,
        last[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1),
        isSwap ? (before[j - 2] ?? Infinity) + 1 : Infinity,
      );
    }
    before = last;
    last = row;
  }
  return last[to.length]!;
}
