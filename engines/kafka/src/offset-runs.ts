/**
 * Offsets above the committed one that are done, as text for the metadata of a commit: `1:` and pairs of a gap and a
 * length, in base 36. Another member that takes over the partition does not deliver them again.
 */
const version = '1:';
const base = 36;

/** Longer runs and gaps are not ours. */
const runMax = 100_000;

/** Kafka keeps this many bytes with a commit, unless `offset.metadata.max.bytes` says otherwise. */
export const metadataMax = 4096;

/** `done` in ascending order, all above `low`. Runs that do not fit are left out: those events may come again. */
export function writeRuns(low: number, done: Iterable<number>): string {
  let text = version;
  let at = low;
  let start = -1;
  let end = -1;
  const flush = () => {
    if (start < 0) return true;
    const run = `${text === version ? '' : ','}${(start - at).toString(base)},${(end - start).toString(base)}`;
    if (text.length + run.length > metadataMax) return false;
    text += run;
    at = end;
    return true;
  };
  for (const offset of done) {
    if (offset === end) end++;
    else {
      if (!flush()) return text;
      start = offset;
      end = offset + 1;
    }
  }
  flush();
  return text === version ? '' : text;
}

/** Reads what `writeRuns` wrote. Text of others means nothing. */
export function readRuns(low: number, text: string | null | undefined): number[] {
  if (!text?.startsWith(version)) return [];
  const numbers = text
    .slice(version.length)
    .split(',')
    .map((number) => Number.parseInt(number, base));
  if (numbers.length % 2 !== 0 || !numbers.every((number) => number > 0 && number <= runMax)) return [];
  const done: number[] = [];
  let at = low;
  for (let index = 0; index < numbers.length; index += 2) {
    const start = at + numbers[index]!;
    at = start + numbers[index + 1]!;
    for (let offset = start; offset < at; offset++) done.push(offset);
  }
  return done;
}
