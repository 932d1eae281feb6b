/**
 * Formats rows under headings. Each column is as wide as its longest cell, except the last one, which is not padded.
 */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [headings, ...rows];
  const widths = headings.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
  return all
    .map((row) =>
      row
        .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column]!)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Puts a text on one line and cuts it after `max` characters. */
export function oneLine(text: string, max: number): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
}

const steps = [
  [864e5, 'd'],
  [36e5, 'h'],
  [6e4, 'm'],
  [1e3, 's'],
] as const;

/** Formats a duration in the largest unit that fits: `3h`, `12s`. */
export function span(ms: number): string {
  const [unitMs, unit] = steps.find(([each]) => ms >= each) ?? [1, 'ms'];
  return `${Math.floor(ms / unitMs)}${unit}`;
}

/** Formats an error in one line: its type, and its message if it has one. */
export function errorLine(reason: string, message: string): string {
  return message ? `${reason}: ${message}` : reason;
}
