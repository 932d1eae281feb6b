import { splitAt, widthOf, wrapText } from './text-width.ts';

/**
 * Fits a report into the width of a terminal. A table that is too wide is split into several tables. Each of
 * them repeats the first column.
 */
export function fitReport(text: string, columns: number | undefined): string {
  if (columns === undefined) return text;
  const blocks: string[][] = [];
  for (const line of text.split('\n')) {
    const last = blocks.at(-1)?.at(-1);
    if (last !== undefined && isRow(last) && isRow(line)) blocks.at(-1)!.push(line);
    else blocks.push([line]);
  }
  return blocks.flatMap((block) => fitBlock(block, columns)).join('\n');
}

/** A line of a table is indented. Two or more spaces separate its columns. */
function isRow(line: string): boolean {
  return /^ {2}.*\S {2,}\S/.test(line);
}

function fitBlock(lines: readonly string[], columns: number): string[] {
  if (lines.every((line) => widthOf(line) <= columns)) return [...lines];
  const starts = columnStarts(lines);
  if (lines.length < 2 || starts.length < 3) return lines.map((line) => wrapText(line, columns, 2));
  const ends = [...starts.slice(1), Math.max(...lines.map(widthOf))];
  const firstEnd = ends[0]!;
  const folded: string[] = [];
  for (let from = 1; from < starts.length; ) {
    let to = from + 1;
    while (to < starts.length && firstEnd + ends[to]! - starts[from]! <= columns) to += 1;
    if (folded.length > 0) folded.push('');
    for (const line of lines) {
      const name = cut(line, 0, firstEnd).padEnd(firstEnd);
      folded.push(`${name}${cut(line, starts[from]!, ends[to - 1]!)}`.trimEnd());
    }
    from = to;
  }
  return folded;
}

/** A column begins after two characters that are spaces in all lines. */
function columnStarts(lines: readonly string[]): number[] {
  const width = Math.max(...lines.map(widthOf));
  const isEmpty = Array.from({ length: width }, (_, at) =>
    lines.every((line) => cut(line, at, at + 1).trim() === ''),
  );
  const starts = [0];
  for (let at = 4; at < width; at += 1) {
    if (isEmpty[at - 1] && isEmpty[at - 2] && !isEmpty[at]) starts.push(at);
  }
  return starts;
}

function cut(line: string, from: number, to: number): string {
  const rest = from === 0 ? line : widthOf(line) <= from ? '' : splitAt(line, from)[1];
  return widthOf(rest) <= to - from ? rest : splitAt(rest, to - from)[0];
}
