/**
 * Encodes numbers as text: the first number, then the offset and length of each consecutive run. A lease
 * mostly has consecutive numbers, so the text is short.
 */
export function encodeSeqs(seqs: readonly number[]): string {
  const sorted = seqs.toSorted((a, b) => a - b);
  const first = sorted[0] ?? 0;
  const runs = [first];
  for (let index = 0; index < sorted.length; ) {
    const from = index;
    while (++index < sorted.length && sorted[index] === sorted[index - 1]! + 1);
    runs.push(sorted[from]! - first, index - from);
  }
  return runs.join(' ');
}

export function decodeSeqs(text: string): number[] {
  const [first = 0, ...runs] = text.split(' ').map(Number);
  const seqs: number[] = [];
  for (let index = 0; index < runs.length; index += 2) {
    const from = first + runs[index]!;
    for (let next = 0; next < runs[index + 1]!; next++) seqs.push(from + next);
  }
  return seqs;
}
