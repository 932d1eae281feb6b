/**
 * Events finish in any order, but Kafka commits a single offset. So the metadata of the commit lists the
 * finished offsets above it, and the next owner of the partition skips them. The text is `1:`, then pairs of
 * a gap and a run length, in base 36.
 */
const version = '1:';
const base = 36;

/** Metadata with a larger gap or run was not written by us, and is ignored. */
const runMax = 100_000;

/**
 * The most bytes of metadata that Kafka stores with a commit. It is the default of the server setting
 * `offset.metadata.max.bytes`.
 */
export const metadataMax = 4096;

/**
 * Encodes the offsets `done`, which are ascending and above `low`. Offsets that do not fit into the metadata
 * are left out: their events may be delivered again.
 */
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

/** Reads text that `writeRuns` wrote. Returns no offsets for the metadata of other programs. */
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
