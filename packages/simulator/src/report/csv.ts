import type { Comparison } from '../comparison.ts';

/** Formats a comparison as CSV, with one line for each policy, group and second. */
export function reportCsv({ policies }: Comparison): string {
  const keys = [
    ...new Set(policies.flatMap(({ groups }) => groups.flatMap(({ series }) => Object.keys(series)))),
  ];
  const head = ['policy', 'part', 'name', 'second', ...keys];
  const lines = policies.flatMap(({ policy, groups }) =>
    groups.flatMap(({ kind, name, series }) => {
      const length = Math.max(0, ...Object.values(series).map(({ mean }) => mean.length));
      return Array.from({ length }, (_, second) => [
        policy,
        kind,
        name,
        second,
        ...keys.map((key) => series[key]?.mean[second] ?? ''),
      ]);
    }),
  );
  return `${[head, ...lines].map((cells) => cells.map(quoted).join(',')).join('\n')}\n`;
}

function quoted(cell: string | number): string {
  const text = typeof cell === 'number' ? `${Number(cell.toPrecision(8))}` : cell;
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
