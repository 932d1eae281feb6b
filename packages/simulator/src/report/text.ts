import type { ComparedPolicy, Comparison } from '../comparison.ts';
import { callerFigures } from './figures.ts';
import { show } from './markup.ts';
import { limits, showMetric, verdict } from './verdict.ts';

const blocks = '▁▂▃▄▅▆▇█';

/**
 * Draws a series as one line of block characters. `most` is the value of a full block; null becomes a gap.
 */
export function sparkline(values: readonly (number | null)[], width: number, most?: number): string {
  const step = Math.max(1, values.length / width);
  const columns = Array.from({ length: Math.min(width, values.length) }, (_, column) => {
    const part = values.slice(
      Math.floor(column * step),
      Math.max(Math.floor((column + 1) * step), Math.floor(column * step) + 1),
    );
    const known = part.filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((sum, each) => sum + each, 0) / known.length;
  });
  const top = most ?? Math.max(...columns.map((value) => value ?? 0));
  return columns
    .map((value) => {
      if (value === null) return ' ';
      const height = top > 0 ? Math.ceil((value / top) * blocks.length) - 1 : 0;
      return blocks[Math.max(0, Math.min(blocks.length - 1, height))];
    })
    .join('');
}

const drawn = [
  { key: 'goodput', title: 'goodput', per: '/s' },
  { key: 'attempts', title: 'attempts', per: '/s' },
];
const WIDTH = 60;

/** Formats a comparison for a terminal: a table of figures, and two lines over time for each policy. */
export function reportText(comparison: Comparison): string {
  const { scenario, seeds, policies } = comparison;
  const name = Math.max(7, ...policies.map(({ policy }) => policy.length));
  const lines = [
    `${scenario.id}${scenario.variant ? ` (${scenario.variant})` : ''}: ${scenario.title}`,
    verdict(comparison),
    `${show(scenario.seconds)} s, ${seeds.length === 1 ? `seed ${seeds[0]}` : `medians of ${seeds.length} seeds`}`,
    '',
    ...table(policies, name),
  ];
  for (const { key, title, per } of drawn) {
    const series = policies.map(({ groups }) => groups[0]?.series[key]?.mean ?? []);
    const most = series.flat().reduce<number>((top, value) => Math.max(top, value ?? 0), 0);
    lines.push('', `${title} over time, up to ${show(most)}${per}`);
    for (const [index, { policy }] of policies.entries()) {
      lines.push(`  ${policy.padEnd(name)}  ${sparkline(series[index]!, WIDTH, most)}`);
    }
    const marks = faultLine(scenario);
    if (marks.trim()) lines.push(`  ${'trouble'.padEnd(name)}  ${marks}`);
  }
  const missed = policies.flatMap(({ policy, trial }) =>
    trial.findings
      .filter(({ met }) => !met)
      .map(
        (each) =>
          `  ${policy}: ${each.what} is ${showMetric(each.metric, each.figure)}, expected ${limits(each)}`,
      ),
  );
  if (missed.length > 0) lines.push('', 'Bounds that were missed', ...missed);
  return lines.join('\n');
}

function faultLine({ faults, seconds }: Comparison['scenario']): string {
  const width = Math.min(WIDTH, Math.ceil(seconds));
  return Array.from({ length: width }, (_, column) => {
    const from = (column / width) * seconds;
    const until = ((column + 1) / width) * seconds;
    return faults.some((fault) => fault.from < until && fault.until > from) ? '▔' : ' ';
  }).join('');
}

function table(policies: readonly ComparedPolicy[], nameWidth: number): string[] {
  const columns = callerFigures.filter(({ key }) =>
    policies.some(({ groups }) => groups[0]?.figures[key]?.median != null),
  );
  const cells = policies.map(({ groups }) =>
    columns.map((each) => each.show(groups[0]?.figures[each.key]?.median)),
  );
  const widths = columns.map(({ title }, column) =>
    Math.max(title.length, ...cells.map((row) => row[column]!.length)),
  );
  const row = (first: string, its: readonly string[]) =>
    `  ${first.padEnd(nameWidth)}  ${its.map((cell, column) => cell.padStart(widths[column]!)).join('  ')}`.trimEnd();
  return [
    row(
      '',
      columns.map(({ title }) => title),
    ),
    ...policies.map(({ policy }, index) => row(policy, cells[index]!)),
  ];
}
