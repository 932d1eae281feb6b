import { bold, type StyledPiece, StyledText } from './styled-text.ts';
import { printable } from './terminal.ts';
import { widthOf, wrapped } from './text-width.ts';

export interface Column {
  readonly heading: string;
  /** `right` is for numbers. */
  readonly align?: 'right';
  /** True: cells of this column stay on one line, because users copy them. */
  readonly whole?: true;
  /** True: if the table is too wide, cells of this column are printed below their row. */
  readonly below?: true;
}

export type Cell = string | StyledPiece;
/** The cells of a row, or a sentence that is printed below the row before it. */
export type Row = readonly Cell[] | StyledPiece;

const gap = '  ';
/** A wide column is not made narrower than this many characters. */
const widthMin = 8;

/**
 * With `columnsMax`, cells are wrapped so that the table fits. Without it, as in a pipe, each row is one
 * line. Empty columns are left out.
 */
export function table(
  headings: readonly (string | Column)[],
  rows: readonly Row[],
  columnsMax: number | undefined,
): StyledText {
  const cells = rows.map((row) => (isNote(row) ? row : row.map(readable)));
  const named = headings.map((each): Column => (typeof each === 'string' ? { heading: each } : each));
  const used = [...named.keys()].filter(
    (index) => rows.length === 0 || cells.some((row) => !isNote(row) && textIn(row[index]) !== ''),
  );
  const all = used.map((index) => named[index]!);
  const whole = cells.map((row) => (isNote(row) ? row : used.map((index) => row[index] ?? '')));
  const { columns, bodies } = isTooWide(all, whole, columnsMax)
    ? withNotes(all, whole)
    : { columns: all, bodies: whole };
  const widths = fit(columns, bodies, columnsMax);
  const lines = [
    ...rowLines(
      columns.map(({ heading }) => bold(heading)),
      columns,
      widths,
    ),
    ...bodies.flatMap((row) => (isNote(row) ? noteLines(row, columnsMax) : rowLines(row, columns, widths))),
  ];
  return new StyledText(lines.flatMap((line, index) => (index === 0 ? line : ['\n', ...line])));
}

function withNotes(columns: readonly Column[], rows: readonly Row[]): { columns: Column[]; bodies: Row[] } {
  const kept = [...columns.keys()].filter((index) => !columns[index]!.below);
  const moved = [...columns.keys()].filter((index) => columns[index]!.below);
  const bodies = rows.flatMap((row): Row[] => {
    if (isNote(row)) return [row];
    const notes = moved
      .map((index) => row[index]!)
      .filter((cell) => textIn(cell) !== '')
      .map((cell): StyledPiece => (typeof cell === 'object' ? cell : { text: cell, style: 'dim' }));
    return [kept.map((index) => row[index]!), ...notes];
  });
  return { columns: kept.map((index) => columns[index]!), bodies };
}

function isTooWide(
  columns: readonly Column[],
  rows: readonly Row[],
  columnsMax: number | undefined,
): columnsMax is number {
  return columnsMax !== undefined && totalWidth(naturalWidths(columns, rows, columnsMax)) > columnsMax;
}

function isNote(row: Row): row is StyledPiece {
  return 'style' in row;
}

function naturalWidths(
  columns: readonly Column[],
  rows: readonly Row[],
  columnsMax: number | undefined,
): number[] {
  const bodies = rows.filter((row): row is readonly Cell[] => !isNote(row));
  return columns.map(({ heading }, index) => {
    // In a terminal, a heading of two words may be broken into two lines.
    const words = columnsMax === undefined ? [heading] : heading.split(' ');
    return Math.max(...words.map(widthOf), ...bodies.map((row) => widthOf(textIn(row[index]))));
  });
}

function totalWidth(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width + gap.length, -gap.length);
}

/** If the table is too wide, the widest columns are made narrower first. */
function fit(columns: readonly Column[], rows: readonly Row[], columnsMax: number | undefined): number[] {
  const widths = naturalWidths(columns, rows, columnsMax);
  const least = columns.map(({ align, whole, heading }, index) =>
    align === 'right' || whole
      ? widths[index]!
      : Math.min(widths[index]!, Math.max(widthMin, ...heading.split(' ').map(widthOf))),
  );
  let over = totalWidth(widths) - (columnsMax ?? Infinity);
  for (; over > 0; over -= 1) {
    const wider = [...widths.keys()].filter((index) => widths[index]! > least[index]!);
    if (wider.length === 0) break;
    const widest = wider.reduce((best, index) => (widths[index]! > widths[best]! ? index : best));
    widths[widest] = widths[widest]! - 1;
  }
  return widths;
}

function rowLines(
  row: readonly Cell[],
  columns: readonly Column[],
  widths: readonly number[],
): (string | StyledPiece)[][] {
  const cells = row.map((cell, index) => wrapped(textIn(cell), widths[index]!));
  const height = Math.max(...cells.map(({ length }) => length));
  return Array.from({ length: height }, (_, line) => {
    const last = cells.findLastIndex((cell) => (cell[line] ?? '') !== '');
    return cells.slice(0, last + 1).flatMap((cell, index) => {
      const text = cell[line] ?? '';
      const room = ' '.repeat(widths[index]! - widthOf(text));
      const isRight = columns[index]!.align === 'right';
      const piece = typeof row[index] === 'object' ? { ...row[index], text } : text;
      return [isRight ? room : '', piece, isRight || index === last ? '' : room, index === last ? '' : gap];
    });
  });
}

function noteLines({ text, style }: StyledPiece, columnsMax: number | undefined): (string | StyledPiece)[][] {
  const lines = columnsMax === undefined ? [text] : wrapped(text, columnsMax - 4);
  return lines.map((line, index) => [index === 0 ? '  ' : '    ', { text: line, style }]);
}

/** Replaces control characters and line breaks. Otherwise, the width of the cell would be wrong. */
function readable(cell: Cell): Cell {
  const text = printable(textIn(cell)).replace(/\s+/g, ' ').trim();
  return typeof cell === 'object' ? { ...cell, text } : text;
}

function textIn(cell: Cell | undefined): string {
  return typeof cell === 'object' ? cell.text : (cell ?? '');
}
